"""The browser that the page is tried in: Debian's chromium, or one that `WAKELOG_CHROMIUM` names, driven by playwright.

Where there is none, or the page was not built, tests are skipped and say what is missing.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from scripts.browser import find_browser

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"


def what_is_missing() -> str:
    """Why the page cannot be tried here; empty when it can."""
    from wakelog.web.assets import page_assets

    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: make test-page installs it"
    if not find_browser():
        return "there is no chromium: make test-page installs it where it may"
    if not page_assets():
        return "the page was not built: make page builds it"
    return ""
