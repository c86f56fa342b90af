"""A session as one file: it opens from the disk, asks nobody for anything, and can be read by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.page.chromium import AXE
from tests.page.reader import RULES
from wakelog.cli.app import app

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

SESSIONS = ("fix-bug", "injection", "crash", "claude-5a1e7c02")


@pytest.fixture(scope="module")
def files(stories: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exported")
    found = {}
    for name in SESSIONS:
        path = folder / f"{name}.html"
        command = ["export", name, "--store", str(stories), "--format", "html", "-o", str(path), "--no-input"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        found[name] = path
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SESSIONS)
def test_it_opens_from_the_disk_without_a_request_and_axe_finds_nothing(
    name: str, scheme: Any, files: dict[str, Path], browser: Browser
) -> None:
    context = browser.new_context(offline=True, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(files[name].as_uri())
    assert page.locator("h1").inner_text().startswith(name)
    assert asked == [files[name].as_uri()]
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("(rules) => axe.run(document, { runOnly: rules })", RULES)
    violations = [
        f"{v['id']}: {n['target']} {n['failureSummary'][:200]}" for v in found["violations"] for n in v["nodes"]
    ]
    context.close()
    assert violations == []


def test_it_reflows_on_a_small_screen(files: dict[str, Path], browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 320, "height": 256})
    page.goto(files["fix-bug"].as_uri())
    assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.close()
