"""A key in a file, and stores that are encrypted with it."""

import base64
import hashlib
from pathlib import Path

import pytest


def key_file(folder: Path, name: str = "master.key") -> str:
    """A source of a key; the same name gives the same key."""
    path = folder / name
    if not path.exists():
        path.touch(0o600)
        path.write_text(base64.b64encode(hashlib.sha256(name.encode()).digest()).decode())
    return f"file:{path}"


def use_rings(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Key rings in a folder of the test, and no key in the environment."""
    monkeypatch.setenv("WAKELOG_KEY_RINGS", str(folder / "rings"))
    monkeypatch.setenv("WAKELOG_CONFIG", str(folder / "config.toml"))
    monkeypatch.delenv("WAKELOG_ENCRYPTION_KEY", raising=False)
