"""House rules about files that a machine can check."""

import ast
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import SOURCE, tree

ROOT = SOURCE.parents[1]
MAX_LINES = 500

# Split, so that this file does not match its own pattern.
REGISTRIES = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("anaconda", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("yarnpkg", "com"),
    ("crates", "io"),
    ("rubygems", "org"),
    ("docker", "io"),
    ("ghcr", "io"),
    ("quay", "io"),
)
REGISTRY = re.compile("|".join(rf"\b{name}\.{top}\b" for name, top in REGISTRIES), re.IGNORECASE)

# Places a checkout may stand in whose names also occur in ordinary examples.
COMMON_PLACES = {
    *("/", "/app", "/build", "/code", "/data", "/home", "/home/user", "/mnt", "/opt", "/project", "/repo"),
    *("/root", "/src", "/srv", "/tmp", "/usr", "/usr/src", "/var", "/var/tmp", "/workspace"),
    tempfile.gettempdir(),
}


@cache
def _project_files() -> list[Path]:
    """Files that git tracks or would add; without git, every file outside hidden folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True) if shutil.which("git") else None
    if listing is not None and listing.returncode == 0:
        names = [Path(name) for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        names = [name for name in names if not name.parts[0].startswith(".") and "__pycache__" not in name.parts]
    return sorted(name for name in names if (ROOT / name).is_file())


@cache
def _texts() -> dict[Path, str]:
    return {name: (ROOT / name).read_text(encoding="utf-8", errors="replace") for name in _project_files()}


def _matches(pattern: re.Pattern[str]) -> list[str]:
    """Where a pattern that spans no line is found."""
    return [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}"
        for name, text in _texts().items()
        for found in pattern.finditer(text)
    ]


def _path_pattern(places: set[str]) -> re.Pattern[str]:
    """Matches a whole path or the start of one, not a part of a longer name."""
    return re.compile("|".join(rf"(?<![\w.\-/…]){re.escape(place)}(?![\w.\-])" for place in sorted(places)))


def test_no_file_names_a_package_registry() -> None:
    assert _matches(REGISTRY) == []


def test_registry_pattern_finds_a_host_in_an_address() -> None:
    assert REGISTRY.search("https://" + ".".join(["files", "pythonhosted", "org"]) + "/packages")
    assert not REGISTRY.search("pip install wakelog")


def test_no_file_holds_a_path_of_this_machine() -> None:
    places = {str(ROOT), str(ROOT.parent)} - COMMON_PLACES
    if not places:
        pytest.skip(f"{ROOT} is too common a place to look for")
    assert _matches(_path_pattern(places)) == []


def test_path_pattern_finds_paths_and_not_longer_names() -> None:
    pattern = _path_pattern({"/somewhere"})
    assert pattern.search('open("/somewhere/main/x.py")')
    assert pattern.search("cd /somewhere")
    assert not pattern.search("/somewhere_else, docs/somewhere, /a/somewhere")


def test_no_source_file_is_too_long() -> None:
    lengths = {
        name: (ROOT / name).read_bytes().count(b"\n")
        for name in _project_files()
        if name.parts[0] == "src" and name.suffix != ".json"
    }
    long = [f"{name}: {lines} lines" for name, lines in lengths.items() if lines > MAX_LINES]
    assert not long, f"above {MAX_LINES} lines; look for the second room hiding inside: {long}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path.relative_to(ROOT)) for path in sorted(SOURCE.rglob("*.py")) if not ast.get_docstring(tree(path))]
    assert not silent, f"without a module docstring: {silent}"


def test_constraints_pin_exact_versions_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    strange = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)]
    assert lines
    assert not strange
    assert not any(line.lower().startswith("wakelog==") for line in lines)
