"""Makes the pictures of the web page for the documents, from the demo sessions: `python scripts/screenshots.py`.

They land in docs/images, one for each page and theme. The demo takes place on a fixed day, so that a picture changes
only when the page does. Needs the page (`make page`) and a browser (`make test-page` brings one).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for when this file is run by its path

import wakelog  # noqa: E402
from scripts.browser import install_browser  # noqa: E402
from wakelog.cli.demo import build  # noqa: E402
from wakelog.http.server import RunningServer, serving  # noqa: E402
from wakelog.http.state import Settings  # noqa: E402
from wakelog.web.assets import require_page  # noqa: E402

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1400, 860
PICTURES = {
    "session": ("/s/claude-5a1e7c02/@1?tab=diff", "derived by rules", ("light", "dark")),
    "compare": ("/compare?a=fix-bug@6.1&b=fix-bug@6.2", "First difference", ("light",)),
    "taint": ("/s/injection/taint?source=web:*", "send_email", ("light",)),
}
"""Each picture: its address, a text that stands there when it is ready, and its themes."""


def take(running: RunningServer, browser: Any, folder: Path) -> list[Path]:
    """Takes every picture; the files."""
    made = []
    for theme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme=theme,
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en-GB",
        )
        page = context.new_page()
        page.goto(f"{running.url}/#key={running.key}")
        page.wait_for_selector("h1")
        for name, (path, text, themes) in PICTURES.items():
            if theme not in themes:
                continue
            page.goto(running.url + path)
            page.get_by_text(text).first.wait_for()
            page.evaluate("() => document.fonts.ready")
            # What is focused by a visitor's hand has a ring; a picture has no visitor.
            page.evaluate("() => document.activeElement?.blur()")
            target = folder / f"{name}-{theme}.png"
            page.screenshot(path=str(target), animations="disabled", caret="hide")
            made.append(target)
        context.close()
    return made


def main(folder: Path = IMAGES) -> None:
    require_page()
    program = install_browser()
    if not program:
        raise SystemExit("there is no browser to take pictures with: install chromium")
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        with wakelog.open(Path(scratch) / "store") as store:
            for demo in ("fix-bug", "injection", "transcript"):
                build(demo, store.engine)
        settings = Settings(url=str(Path(scratch) / "store"), rate=0)
        with serving(settings, launch_scope="read") as running, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            for path in take(running, browser, folder):
                print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}  {path.stat().st_size:,} bytes")
            browser.close()


if __name__ == "__main__":
    main()
