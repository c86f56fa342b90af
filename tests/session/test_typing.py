"""What a type checker knows of a session. mypy reads the functions below; pytest runs mypy on this file."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wakelog.session import Session
from wakelog.session.aio import Aio, AsyncVerb, AwaitedVerbs
from wakelog.store import Store

if TYPE_CHECKING:
    from typing import assert_type

    from wakelog.monitors.budgets import LimitUse
    from wakelog.session.turn import Turn


@dataclass
class Plan:
    steps: list[str] = field(default_factory=list)


if TYPE_CHECKING:

    def the_data_has_the_type_it_was_opened_with(store: Store) -> None:
        session = store.session("x", data=Plan, goal="typed")
        assert_type(session, Session[Plan])
        assert_type(session.data, Plan)
        assert_type(session.turn("go"), Turn[Plan])
        with session.turn("go") as turn:
            assert_type(turn.data, Plan)
        for attempt in session.attempts(2):
            with attempt as turn:
                assert_type(turn.data.steps, list[str])
        assert_type(store.session("x", data=Plan(["a"])), Session[Plan])
        assert_type(store.resume("x", data=Plan, even_damaged=True), Session[Plan])
        assert_type(session.fork("@1"), Session[Plan])
        assert_type(store.session("x"), Session[dict[str, Any]])
        assert_type(store.session("x", data={}), Session[dict[str, Any]])

    async def awaited_verbs_have_their_signatures(session: Session[Plan]) -> None:
        assert_type(await session.aio.fact("a", 1, why="known"), int)
        assert_type(await session.aio.budget.spent(), tuple[LimitUse, ...])
        await session.aio.fact()  # type: ignore[call-arg]
        await session.aio.calls.approve("a", bye="ada")  # type: ignore[call-arg]
        session.aio.no_such_verb  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow  # `make lint`, which CI runs before the tests, reads this file with all the others
def test_mypy_agrees() -> None:
    api = pytest.importorskip("mypy.api")
    here = Path(__file__)
    out, problems, status = api.run(["--strict", "--no-incremental", "--follow-imports=silent", str(here)])
    assert not status, out + problems + sys.version


def test_every_verb_can_be_awaited() -> None:
    own = {"aio", "attempts", "events", "follow", "replay", "tool", "turn"}  # iterators, decorators and `with`
    own |= {"data", "head", "id", "status", "store"}
    verbs = {name for name in dir(Session) if not name.startswith("_")} - own
    session: Any = object.__new__(Session)
    aio: Any = Aio(session)
    assert not {verb for verb in verbs if verb not in vars(Aio) and verb not in vars(aio)}
    sync = {"bind", "limit", "guards"}
    for space, verbs_of in vars(aio).items():
        if isinstance(verbs_of, AwaitedVerbs):
            names = {name for name in dir(getattr(session, space)) if not name.startswith("_")} - sync
            assert names == {name for name, each in vars(type(verbs_of)).items() if isinstance(each, AsyncVerb)}, space
