"""Agents that are killed with `kill -9`, at every one of their moments, and simply run again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.context.validity import check
from tests.crash import processes

SAMPLE = 4
SEED = 7
SENT = ["charge 1: 1", "post 1: 1", "send 1: 2", "send 2: 1"]
EFFECTS = {
    "sync": SENT,
    "threads": ["charge 1: 1", "send 1: 1", "send 2: 1", "send 3: 1"],
    "ids": ["charge 1: 1", "post 1: 1", "send 1: 2", "send 2: 1"],
    "async": ["plain 1: 1", "send 1: 2", "send 2: 1", "send 3: 1"],
}


class Shown(list[Any]):
    """What a child says that a model would be shown."""

    def __init__(self, shape: str, system: str, messages: list[Any]) -> None:
        super().__init__(messages)
        self.shape, self.system = shape, system


def check_windows(lines: list[str]) -> None:
    """Whatever a model would be shown, at any moment, is accepted by its provider."""
    shown = [Shown(**json.loads(line.removeprefix("window "))) for line in lines if line.startswith("window ")]
    assert {each.shape for each in shown} == {"openai", "anthropic"}
    for each in shown:
        check(each)


def _check(lines: list[str], variant: str) -> list[int]:
    """Holds what was told of each agent against the one that was never killed; how many lives each of them had."""
    check_windows(lines)
    told = [json.loads(line.removeprefix("told ")) for line in lines if line.startswith("told ")]
    lived = [line.split(" ", 2) for line in lines if line.startswith("lived ")]
    assert len(told) == len(lived) > 1
    whole: dict[str, Any] = told[0]
    assert whole["effects"] == EFFECTS[variant]
    for one, (_, _, deaths) in zip(told, lived, strict=True):
        assert one["effects"] == whole["effects"], deaths
        assert one["done"] == whole["done"], deaths
        assert one["turn"] == [2 if variant == "ids" else 1, "completed"], deaths
        assert one["pending"] == [], deaths
        assert one["verified"], deaths
    return [int(lives) for _, lives, _ in lived]


@pytest.mark.parametrize("sample", [SAMPLE, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("variant", ["sync", "threads", "ids", "async"])
def test_an_agent_killed_at_any_moment_and_run_again_does_everything_once(
    tmp_path: Path, variant: str, sample: int
) -> None:
    lines = processes.run(
        "die_everywhere",
        module="tests.runtime.children",
        variant=variant,
        folder=str(tmp_path),
        sample=sample,
        seed=SEED,
    )
    lives = _check(lines, variant)
    assert lives[0] == 1
    assert min(lives[1:]) > 1 or sample == 0  # after its last moment an agent is through
    assert max(lives) > 2 or sample  # a few moments may happen to need one life more only


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["sync", "threads", "ids", "async"])
def test_an_agent_killed_three_times_does_everything_once(tmp_path: Path, variant: str) -> None:
    lines = processes.run(
        "die_everywhere",
        module="tests.runtime.children",
        variant=variant,
        folder=str(tmp_path),
        sample=0,
        seed=SEED,
        twice=True,
    )
    _check(lines, variant)
