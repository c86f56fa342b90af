"""The built wheel works alone: outside the checkout, in an environment that holds nothing else."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

OPEN_A_STORE = """
import sys
import wakelog

s = wakelog.open(sys.argv[1])
s.close()
"""


def _run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | (env or {}),
        capture_output=True,
        text=True,
        timeout=180,
    )
    shown = " ".join(map(str, command))
    assert done.returncode == 0, f"{shown}\nexited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_wheel_works_in_a_bare_environment(tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "wheel", "-qq", "--no-deps", "-w", tmp_path / "dist", ROOT, cwd=tmp_path, env={"WAKELOG_PAGE": "skip"})
    [wheel] = (tmp_path / "dist").glob("wakelog-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "wakelog/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"wakelog", f"wakelog-{version}.dist-info"}

    # pip of the running environment installs into the bare one, which saves bootstrapping a second pip.
    _run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    bin_dir = tmp_path / "env" / "bin"
    python = bin_dir / "python"
    _run(
        *pip, "--python", python, "install", "-qq", "--no-compile", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path
    )

    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    home.mkdir()
    env = {"HOME": str(home)}
    printed = _run(python, "-c", "import wakelog; print(wakelog.__version__)", cwd=outside, env=env)
    assert printed.strip() == version
    assert version in _run(bin_dir / "wakelog", "--version", cwd=outside, env=env)
    assert "Usage" in _run(bin_dir / "wakelog", "--help", cwd=outside, env=env)
    _run(python, "-c", OPEN_A_STORE, outside / "small.db", cwd=outside, env=env)
