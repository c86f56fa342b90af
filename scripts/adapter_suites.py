"""Runs the tests of each framework's adapter in an environment of its own.

Frameworks disagree about the versions of what they share, so each folder of `tests/adapters` that holds a
`constraints.txt` gets its own environment under `.venv-adapters`, with the extra of the same name. A constraints
file pins the framework. Its first lines may name further packages that only the tests need, and other extras than that:

    # also: langgraph-checkpoint-conformance
    # extras: langgraph openai-agents
    langgraph==1.2.3

`constraints-oldest.txt` beside it is a suite of its own, `langgraph_oldest`: the same tests with other releases.

    python scripts/adapter_suites.py                    every framework
    python scripts/adapter_suites.py langgraph adk      only these
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUITES = ROOT / "tests" / "adapters"
ENVIRONMENTS = ROOT / ".venv-adapters"


def main(names: list[str]) -> int:
    """Run the suites named, or all; the exit code is 1 where one failed."""
    known = sorted(suites())
    names = [name.replace("-", "_") for name in names]  # a folder is a package, and an extra may have a hyphen
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"no suite is called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not passes(name)]
    print(f"failed: {', '.join(failed)}" if failed else "every suite passed")
    return 1 if failed else 0


def suites() -> dict[str, Path]:
    """The constraints of each suite, by name."""
    found = SUITES.glob("*/constraints*.txt")
    return {path.parent.name + path.stem.removeprefix("constraints").replace("-", "_"): path for path in found}


def passes(name: str) -> bool:
    """Install what one suite needs, and run it."""
    print(f"== {name}", flush=True)
    python = environment(name)
    run = [python, "-m", "pytest", "-q", "-p", "no:xdist", str(suites()[name].parent.relative_to(ROOT))]
    return subprocess.run(run, cwd=ROOT, check=False).returncode == 0


def environment(name: str) -> str:
    """The interpreter of the suite's environment, made anew when its constraints changed."""
    folder = ENVIRONMENTS / name
    constraints = suites()[name]
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = constraints.read_text("utf-8") + (ROOT / "pyproject.toml").read_text("utf-8")
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        venv.create(folder, with_pip=True, clear=True)
        extras = told(constraints, "extras") or [constraints.parent.name.replace("_", "-")]
        wakelog = f"{ROOT}[{','.join([*extras, 'adapter-suites'])}]"
        install = [str(python), "-m", "pip", "install", "-qq", "-c", str(constraints), "-e", wakelog]
        subprocess.run([*install, *told(constraints, "also")], env={**os.environ, "WAKELOG_PAGE": "skip"}, check=True)
        stamp.write_text(wanted, "utf-8")
    return str(python)


def told(constraints: Path, what: str) -> list[str]:
    """What a comment of a constraints file asks for."""
    lines = constraints.read_text("utf-8").splitlines()
    return next((line.partition(":")[2].split() for line in lines if line.startswith(f"# {what}:")), [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
