"""Which core is in use is decided when wakelog is imported, and said in words."""

import os
import subprocess
import sys
from types import ModuleType

import pytest

from wakelog import native


def pretend(patch: pytest.MonkeyPatch, core: ModuleType | None, pure: str = "") -> None:
    patch.setenv("WAKELOG_PURE", pure)
    patch.setitem(sys.modules, "wakelog_core", core)


def made_core(interface: int) -> ModuleType:
    core = ModuleType("wakelog_core")
    vars(core).update(__version__="9.8.7", INTERFACE=interface)
    return core


def test_an_installed_core_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    core = made_core(native.INTERFACE)
    pretend(monkeypatch, core)
    assert native._load() == (core, "wakelog-core 9.8.7")


@pytest.mark.parametrize("pure", ["1", "true"])
def test_an_installed_core_is_left_aside_when_pure_python_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, pure: str
) -> None:
    pretend(monkeypatch, made_core(native.INTERFACE), pure)
    assert native._load() == (None, "WAKELOG_PURE is set")


def test_a_core_of_another_interface_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, made_core(native.INTERFACE + 1))
    assert native._load() == (None, "wakelog-core 9.8.7 is for another version of wakelog")


def test_wakelog_says_why_there_is_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, None)  # as if it were not installed
    core, why = native._load()
    assert core is None
    assert why == "wakelog-core is not installed"


def test_what_is_in_use_is_said_in_words() -> None:
    command = [sys.executable, "-c", "from wakelog.native import IN_USE; print(IN_USE)"]
    said = subprocess.run(command, env={**os.environ, "WAKELOG_PURE": "1"}, capture_output=True, text=True, check=True)
    assert said.stdout == "pure Python (WAKELOG_PURE is set)\n"
