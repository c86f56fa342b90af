"""The pictures for the documents can be made anew: each page in each of its themes, and the themes differ."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.screenshots import HEIGHT, IMAGES, PICTURES, WIDTH, take
from wakelog.http.server import RunningServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def test_every_picture_is_taken_and_light_is_not_dark(reading: RunningServer, browser: Browser, tmp_path: Path) -> None:
    made = take(reading, browser, tmp_path)
    wanted = {f"{name}-{theme}.png" for name, (_, _, themes) in PICTURES.items() for theme in themes}
    assert {path.name for path in made} == wanted
    for path in made:
        assert struct.unpack(">II", path.read_bytes()[16:24]) == (WIDTH, HEIGHT)
    assert (tmp_path / "session-light.png").read_bytes() != (tmp_path / "session-dark.png").read_bytes()


def test_the_pictures_in_the_documents_are_the_ones_of_the_script() -> None:
    wanted = {f"{name}-{theme}.png" for name, (_, _, themes) in PICTURES.items() for theme in themes}
    assert {path.name for path in IMAGES.iterdir()} == wanted
    assert all(path.stat().st_size < 300_000 for path in IMAGES.iterdir())
