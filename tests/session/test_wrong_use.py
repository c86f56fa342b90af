"""What a caller passes by mistake is named in the error, with what to do, and the session stays usable."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.every import every
from wakelog import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError, events
from wakelog.store import Store

WRONG: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("not-a-value", "a name is a text, not 5", lambda store, s: store.session(5)),
    ("not-a-value", "a name is a text, not None", lambda store, s: store.resume(None)),
    ("bad-selector", "1.5 is not a valid position", lambda store, s: s.state(1.5)),
    ("bad-selector", "turn='@1' is not the number of a turn", lambda store, s: s.events(turn="@1")),
    ("bad-selector", "turn=(1, 2, 3) is not the number", lambda store, s: s.events(turn=(1, 2, 3))),
    ("bad-event", "{'key': 1} is not an event", lambda store, s: s.append({"key": 1})),
    ("bad-event", "is not an event", lambda store, s: s.append(events.FactRecorded)),
    ("bad-key", "'data' is not a key of the state", lambda store, s: s.history.blame("data")),
    ("bad-budget", "limits are a dict", lambda store, s: store.session("x", limits="5")),
    ("bad-limit", "'500' is not a number of tokens", lambda store, s: s.context.window("500")),
    ("bad-limit", "1.5 is not a number of tokens", lambda store, s: s.brief(1.5)),
    ("not-a-list", "pinned keys are a list", lambda store, s: s.context.window(500, pinned="e3")),
    ("not-a-session", "'s' is not a session", lambda store, s: store.delete("s")),
    ("not-a-session", "'s' is not a session", lambda store, s: store.erase("s", 1)),
    ("not-a-session", "'s' is not a session", lambda store, s: store.spawn("s", "child")),
    ("not-a-session", "'s' is not a session", lambda store, s: s.adopt("s")),
    ("bad-bundle", "not to str", lambda store, s: s.export_bundle("a.wakelog")),
    ("bad-bundle", "not to StringIO", lambda store, s: s.export_bundle(io.StringIO())),
    ("bad-bundle", "not from str", lambda store, s: store.import_bundle("a.wakelog")),
]


@every("case", WRONG, ids=lambda case: case[1])
def test_the_error_names_the_mistake_and_what_to_do(
    store: Store, case: tuple[str, str, Callable[[Any, Any], Any]]
) -> None:
    kind, text, use = case
    session = store.session("s")
    before = session.head.seq
    with pytest.raises(InvalidInputError) as caught:
        use(store, session)
    assert (caught.value.kind, text in caught.value.message, bool(caught.value.hint)) == (kind, True, True)
    assert session.head.seq == before


def test_a_session_that_is_closed_or_paused_says_how_to_go_on(store: Store) -> None:
    session = store.session("s")
    session.life.pause()
    with pytest.raises(NotAllowedError, match="paused") as caught:
        session.life.pause()
    assert "session.life.unpause()" in caught.value.hint
    session.life.unpause()
    session.life.end()
    with pytest.raises(NotAllowedError, match="closed") as caught, session.turn("go"):
        pass
    assert "session.life.reopen()" in caught.value.hint
    session.life.reopen()
    session.fact("k", "v")


def test_a_position_that_does_not_exist_is_refused_by_the_name_of_the_session(store: Store) -> None:
    session = store.session("fix-login")
    for where in ("@9", "e9", "cp:none", 9, "@0"):
        with pytest.raises(NotFoundError, match="fix-login"):
            session.state(where)


def test_a_file_that_is_not_a_store_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UnavailableError, match=r"notes\.txt is a file, and not a store") as caught:
        wakelog.open(tmp_path / "notes.txt")
    assert caught.value.hint


def test_data_set_after_its_turn_is_refused_and_not_lost_silently(store: Store) -> None:
    session = store.session("s", data={"plan": []})
    with session.turn("go") as turn:
        turn.data = {"plan": ["a"]}
    with pytest.raises(NotAllowedError, match="@1 has ended") as caught:
        turn.data = {"plan": ["b"]}
    assert caught.value.kind == "turn-ended"
    assert "session.patch()" in caught.value.hint
    assert turn.data == session.state().data == {"plan": ["a"]}
