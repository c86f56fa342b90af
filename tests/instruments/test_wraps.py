"""A wrapped function does what it did, whatever happens beside it."""

import asyncio
import logging
from typing import Any

import pytest

from wakelog.instruments import patches
from wakelog.instruments.function_wrapper import wrap, wrap_async


def _blind(*_: Any) -> Any:
    raise LookupError("arguments of a kind that nobody thought of")


@pytest.fixture(autouse=True)
def _not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "_warned", [])


def test_arguments_that_cannot_be_looked_at_are_passed_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def add(a: int, *, b: int) -> int:
        """Adds."""
        return a + b

    async def later(a: int, *, b: int) -> int:
        return a + b

    with caplog.at_level(logging.WARNING, logger="wakelog"):
        wrapped = wrap(_blind, _blind, add)
        assert (wrapped(1, b=2), wrapped.__name__, wrapped.__doc__) == (3, "add", "Adds.")
        assert asyncio.run(wrap_async(_blind, _blind, later)(1, b=2)) == 3
    (warning,) = caplog.records
    assert "nobody thought of" in warning.getMessage()


def test_an_error_of_the_function_is_its_own() -> None:
    error = ValueError("mine")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="mine") as raised:
        wrap(_blind, _blind, fail)()
    assert raised.value is error
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
