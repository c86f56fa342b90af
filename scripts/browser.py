"""Finds the browser that the page is tried in, and installs it where this machine allows that.

`make test-page`, `make bench` and scripts/screenshots.py need one. Debian's chromium is installed with apt-get when
this runs as root; anywhere else a line says loudly what is missing, and what needs a browser is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str:
    """The program: the one that `WAKELOG_CHROMIUM` names, or the first that is installed; else nothing."""
    return os.environ.get("WAKELOG_CHROMIUM", "") or next(filter(None, map(shutil.which, NAMES)), "")


def install_browser() -> str:
    """Installs chromium if there is none and this user may; the program, or nothing."""
    if found := find_browser():
        return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
            if subprocess.run(command, env=environment, check=False).returncode:
                break
    return find_browser()


def main() -> None:
    if found := install_browser():
        print(f"the browser is {found}")
    else:
        print(
            "!!! NO BROWSER: install chromium, or name one in WAKELOG_CHROMIUM. The page is NOT tried.", file=sys.stderr
        )


if __name__ == "__main__":
    main()
