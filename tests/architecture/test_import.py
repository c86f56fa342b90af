"""What `import wakelog` may do: define names. Heavy modules load when first used, and nothing else happens.

Each check runs in a fresh interpreter, in an empty folder and with an empty home.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import wakelog

ROOT = Path(__file__).resolve().parents[2]
LAZY = ("apsw", "asyncio", "click", "rich", "zstandard")

# An audit hook cannot be removed, which is one more reason for a child process.
PROBE = """
import json, os, sys, threading

seen = []
def hook(event, args):
    if event == "open":
        seen.append([str(args[0]), str(args[1]), args[2]])
    elif event in ("subprocess.Popen", "os.fork", "socket.connect", "sqlite3.connect"):
        seen.append([event, "", os.O_RDWR])

before = set(sys.modules)
sys.addaudithook(hook)
import wakelog
opened = list(seen)
tasks = "/proc/self/task"
print(json.dumps({
    "opened": opened,
    "modules": sorted(set(sys.modules) - before),
    "threads": [t.name for t in threading.enumerate()],
    "tasks": len(os.listdir(tasks)) if os.path.isdir(tasks) else 1,
}))
"""


@pytest.fixture
def probe(tmp_path: Path) -> dict[str, Any]:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "WAKELOG_"))}
    env |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=work, env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    result["created"] = sorted(str(path) for folder in (work, home) for path in folder.rglob("*"))
    return result


def test_import_starts_no_threads(probe: dict[str, Any]) -> None:
    assert probe["threads"] == ["MainThread"]
    assert probe["tasks"] == 1


def test_import_creates_no_files(probe: dict[str, Any]) -> None:
    assert probe["created"] == []


def test_import_opens_only_modules_and_only_to_read(probe: dict[str, Any]) -> None:
    writing = os.O_WRONLY | os.O_RDWR
    strange = [
        path for path, _, flags in probe["opened"] if flags & writing or not path.endswith((".py", ".pyc", ".so"))
    ]
    assert not strange, f"import wakelog opened {strange}: read it when it is first needed"


@pytest.mark.parametrize("module", LAZY)
def test_import_leaves_heavy_modules_for_later(probe: dict[str, Any], module: str) -> None:
    assert module not in probe["modules"], f"import wakelog loads {module}: import it where it is used"


def test_public_names_are_sorted_and_resolve() -> None:
    assert list(wakelog.__all__) == sorted(set(wakelog.__all__))
    missing = [name for name in wakelog.__all__ if not hasattr(wakelog, name)]
    assert not missing, f"wakelog.__all__ promises {missing}, which do not resolve"


def test_public_names_are_listed_by_dir() -> None:
    assert set(wakelog.__all__) <= set(dir(wakelog))


def test_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert wakelog.__version__ == project["version"]
