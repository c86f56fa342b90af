"""A small hand-made build of the page, so that the tests need no Node.js."""

from pathlib import Path

import pytest

from wakelog.web import assets

HTML = b"<!doctype html><title>wakelog</title><script type=module src=/assets/index-1a2b.js></script>"
SCRIPT = b"// " + b"the page " * 400


def build_page(folder: Path) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(HTML)
    (folder / "assets" / "index-1a2b.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-3c4d.css").write_bytes(b"body { margin: 0 }")
    (folder / "icon.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "notes.txt").write_bytes(b"no file of the page")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is built."""
    build_page(tmp_path / "static")
    _use(tmp_path / "static", monkeypatch)


@pytest.fixture
def not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is not built, as in a fresh checkout."""
    _use(tmp_path / "nowhere", monkeypatch)


def _use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = assets.read_assets(folder)
    monkeypatch.setattr(assets, "page_assets", lambda: found)
    monkeypatch.setattr("wakelog.http.page.page_assets", lambda: found)
