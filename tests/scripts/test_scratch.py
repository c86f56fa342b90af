"""Where a test run puts its files."""

import subprocess
from pathlib import Path

import pytest

from scripts import scratch


def test_scripts_can_be_run_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    script = Path(scratch.folder()) / f"wakelog-{Path(__file__).stem}.sh"
    script.write_text("#!/bin/sh\nexit 3\n")
    try:
        script.chmod(0o755)
        assert subprocess.run([script]).returncode == 3
    finally:
        script.unlink()


def test_folder_that_was_chosen_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert scratch.folder() == str(tmp_path)


def test_place_without_room_does_not_serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(scratch, "MEMORY", tmp_path / "missing")
    assert scratch.folder() != str(tmp_path / "missing")
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "ROOM", 1 << 60)
    assert scratch.folder() != str(tmp_path)
