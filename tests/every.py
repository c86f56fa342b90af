"""Many small cases as one test.

As tests of their own, cases that take a moment each cost more in listing, setting up and telling than in what they
check. `@every("case", CASES)` stands where `@pytest.mark.parametrize("case", CASES)` would: all cases are checked, and
the test fails with the names of those that failed.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(name: str, cases: Iterable[Any], ids: Callable[[Any], str] = repr) -> Callable[[Any], Any]:
    """Gives a test each of `cases` as its argument `name`; what else it asks for are fixtures, shared by all cases."""
    listed = list(cases)
    assert listed, f"there is no case for {name}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def check(**given: Any) -> None:
            failed = []
            for case in listed:
                try:
                    test(**given, **{name: case})
                except (Exception, pytest.fail.Exception) as exc:
                    failed.append(f"{ids(case)}: {type(exc).__name__}: {exc}")
            assert not failed, f"{len(failed)} of {len(listed)} cases fail:\n" + "\n".join(failed)

        functools.update_wrapper(check, test)
        asked = inspect.signature(test)
        rest = [each for each in asked.parameters.values() if each.name != name]
        check.__signature__ = asked.replace(parameters=rest)  # type: ignore[attr-defined]
        del check.__wrapped__  # type: ignore[attr-defined]
        return check

    return decorate
