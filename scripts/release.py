"""Prepare a release: collect the changelog, build the wheel and the sdist, and try both in empty environments.

    make release            everything below
    make release DRY=1      print the changelog section and build; change no file
    make changelog          only collect the changelog; the section is marked as unreleased

Where cargo is, a wheel of the native core for this platform is built beside them.

The version is the one in pyproject.toml. The fragments in changes/ become its section in CHANGELOG.md and are deleted.
A section marked as unreleased takes further fragments, and the release puts its date there. Nothing is published,
committed or tagged: the script ends with the commands for that.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for when this file is run by its path
from scripts import native  # noqa: E402

HEADINGS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
UNRELEASED = "## Unreleased"
NOT_YET = "unreleased"
"""In place of the date, in the section of a version that is collected but not released."""
PAGE = "wakelog/web/static/index.html"
NEVER_SHIPPED = (".venv", ".git/", "__pycache__", ".hypothesis")


def read_version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def read_fragments(root: Path) -> list[Path]:
    """The fragments in order of their names; a file that is not one is an error, so that no change is lost."""
    found = sorted(path for path in (root / "changes").glob("*.md") if path.name != "README.md")
    for path in found:
        if path.name.split(".")[-2] not in HEADINGS:
            raise SystemExit(f"changes/{path.name} is not a fragment: name it <slug>.<{'|'.join(HEADINGS)}>.md")
    return found


def make_section(version: str, date: str, fragments: list[Path], earlier: str = "") -> str:
    """The section of one version: its fragments under their headings, after what was collected `earlier`."""
    lines = [f"## {version} ({date})"]
    for kind, heading in HEADINGS.items():
        texts = [path.read_text(encoding="utf-8").strip() for path in fragments if path.name.split(".")[-2] == kind]
        items = ["- " + text.replace("\n", "\n  ").replace("\n  \n", "\n\n") for text in texts]
        if before := _under(earlier, heading):
            items.insert(0, before)
        if items:
            lines += ["", f"### {heading}", "", *items]
    return "\n".join(lines) + "\n"


def _under(section: str, heading: str) -> str:
    """What a section has under a heading; empty when it does not have the heading."""
    return section.partition(f"\n### {heading}\n")[2].partition("\n### ")[0].strip()


def collect(root: Path, date: str, *, dry_run: bool = False) -> str:
    """Moves the fragments into CHANGELOG.md, and returns the section of the version, right below "Unreleased"."""
    page = root / "CHANGELOG.md"
    text = page.read_text(encoding="utf-8")
    version = read_version(root)
    before, heading, after = text.partition(UNRELEASED)
    intro, newline, older = after.partition("\n## ")
    earlier = ""
    if older.startswith(f"{version} ({NOT_YET})"):
        earlier, newline, older = older.partition("\n## ")
    elif f"\n## {version} " in text:
        raise SystemExit(f"CHANGELOG.md already has a section for {version}: raise the version in pyproject.toml")
    fragments = read_fragments(root)
    section = make_section(version, date, fragments, earlier)
    if dry_run:
        return section
    page.write_text(f"{before}{heading}{intro.rstrip()}\n\n{section}{newline}{older}", encoding="utf-8")
    for path in fragments:
        path.unlink()
    return section


def build(root: Path, out: Path) -> tuple[Path, Path]:
    """A wheel and an sdist in `out`, and what is inside looked at once."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=root)
    [wheel], [sdist] = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        shipped = archive.namelist()
    if PAGE not in shipped:
        raise SystemExit(f"the wheel has no page: {PAGE} is missing")
    with tarfile.open(sdist) as archive:
        shipped += archive.getnames()
    strays = [name for name in shipped if any(part in name for part in NEVER_SHIPPED)]
    if strays:
        raise SystemExit(f"the build holds what it should not: {', '.join(strays[:5])}")
    return wheel, sdist


def try_out(package: Path, version: str) -> None:
    """Installs the package into an empty environment and starts its command."""
    with tempfile.TemporaryDirectory() as folder:
        env = Path(folder) / "env"
        run(sys.executable, "-m", "venv", env)
        run(env / "bin" / "pip", "install", "-qq", "-c", ROOT / "constraints.txt", package)
        shown = run(env / "bin" / "wakelog", "--version", cwd=Path(folder))
        if version not in shown:
            raise SystemExit(f"{package.name} says {shown.strip()!r}, but the version is {version}")
        run(env / "bin" / "wakelog", "--help", cwd=Path(folder))
    print(f"{package.name}: installs into an empty environment, and its command starts")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="print the section and build; change no file")
    parser.add_argument("--collect", action="store_true", help="collect the changelog, and release nothing")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    given = parser.parse_args()
    version = read_version(ROOT)
    if given.collect:
        print(collect(ROOT, NOT_YET))
        return
    print(collect(ROOT, given.date, dry_run=given.dry_run))
    for package in build(ROOT, ROOT / "dist"):
        try_out(package, version)
    problem = native.missing()
    print(f"no wheel of the native core: {problem}" if problem else native.build(ROOT / "dist").name)
    if not given.dry_run:
        print(f"next: git commit -am 'release: {version}' && git tag v{version}, then publish dist/")


if __name__ == "__main__":
    main()
