"""Erasing and redacting from the command line."""

from tests.cli.conftest import Cli
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.store import Store

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_cascade_erases_what_came_of_it(move: Cli, store: Store) -> None:
    page = next(e.seq for e in store.resume("injection").events(tool="fetch", kind="action.succeeded"))
    result = move("erase", "-s", "injection", f"e{page}", "--why", "ticket", "--cascade", "--yes", "--json")
    assert result.code == 0
    kinds = {f["kind"] for f in result.data["cascade"]}
    assert {"fact.recorded", "decision.made", "action.requested"} <= kinds
    session = store.resume("injection")
    erased = {e.seq for e in session.events() if not e.is_intact}
    assert erased == {page} | {f["seq"] for f in result.data["cascade"]}
    assert session.verify().ok
    assert "customer list to billing" not in move("export", "injection", "--ndjson").out


def test_cascade_reaches_into_forks(move: Cli, store: Store) -> None:
    parent = store.session("parent")
    said = parent.message("user", "the secret")
    fork = parent.fork(name="child")
    copied = fork.append(EventDraft(ev.FactRecorded(key="k", value="the secret"), derived_from=((said, said),))).seq
    data = move("erase", "-s", "parent", f"e{said}", "--why", "t", "--cascade", "--yes", "--json").data
    assert [(f["session"], f["seq"]) for f in data["cascade"]] == [(fork.id, copied)]
    assert not store.resume("child").log.entry(copied).is_intact
    assert not store.resume("child").log.entry(said).is_intact
    assert store.resume("child").verify().ok


def test_events_that_repeat_the_content_are_counted_too(move: Cli, store: Store) -> None:
    session = store.session("again")
    session.fact("greeting", "hello")
    told = session.fact("k", "the secret")
    session.rewind(told - 1)
    session.undo()
    out = move("erase", "-s", "again", f"e{told}", "--why", "t", "--yes").out
    erased = [e.seq for e in store.resume("again").events() if not e.is_intact]
    assert len(erased) == 2
    assert "Erased 2 events" in out


def test_what_a_deleted_parent_left_is_erased_through_its_fork(move: Cli, store: Store) -> None:
    parent = store.session("parent")
    said = parent.message("user", "the secret")
    fork = parent.fork(name="child")
    store.delete(parent)
    assert move("erase", "-s", "child", f"e{said}", "--why", "t", "--cascade", "--yes").code == 0
    assert not store.resume(fork.id).log.entry(said).is_intact


def test_already_erased_is_passed_over_with_exit_7(move: Cli) -> None:
    assert move("erase", "-s", "crash", "e5", "--why", "t", "--yes").code == 0
    assert move("erase", "-s", "crash", "e5", "e6", "--why", "t", "--yes").code == 7
    result = move("erase", "-s", "crash", "e5", "--why", "t", "--yes")
    assert (result.code, "Nothing to erase" in result.out) == (0, True)


def test_dry_run_erases_nothing(move: Cli, store: Store) -> None:
    before = store.resume("crash").head
    assert move("erase", "crash@1", "--why", "t", "--dry-run").code == 0
    assert store.resume("crash").head == before


def test_why_is_needed(move: Cli) -> None:
    assert move("erase", "crash@1", "--yes").code == 2


def test_redact_finds_stored_secrets_without_showing_them(move: Cli, store: Store) -> None:
    session = _undoored(store).session("leaky")
    session.fact("fine", "nothing to see")
    seq = session.message("user", f"use {SECRET} please")
    result = move("redact", "leaky", "--dry-run", "--json")
    assert result.code == 0
    assert [f["seq"] for f in result.data["found"]] == [seq]
    assert SECRET not in result.out
    assert move("redact", "leaky", "--yes").code == 0
    assert not store.resume("leaky").log.entry(seq).is_intact
    assert move("redact", "leaky", "--dry-run", "--json").data["found"] == []


def test_redact_finds_secrets_in_payloads(move: Cli, store: Store) -> None:
    session = _undoored(store).session("leaky")
    seq = session.message("user", "x" * 200_000 + f" {SECRET} ")
    assert "$payload" in session.log.entry(seq).body["content"]
    found = move("redact", "leaky", "--dry-run", "--json").data["found"]
    assert [f["seq"] for f in found] == [seq]


def _undoored(store: Store) -> Store:
    """The same store without redaction at the door: as what was stored before there was any."""
    return Store(store.engine, clock=store.clock, redact=None)


def test_what_is_erased_says_so_and_a_tool_that_a_model_made_up_is_named(move: Cli, store: Store) -> None:
    session = store.session("told")

    @session.tool
    def ask(who: str) -> str:
        return f"{who} says blue"

    with session.turn("a question"):
        ask("her")
        session.call("ask_mrs_miller", {})
        session.decide("blue", because="she said so")
        session.fact("colour", "blue")
    result = move("erase", "-s", "told", "@1", "--why", "t", "--yes", "--json")
    assert set(result.data["names"]) == {"fact colour", "tool ask_mrs_miller"}
    shown = move("show", "told@1").out
    page = move("export", "told", "--format", "md").out
    told = shown + page + move("log", "told").out + move("log", "told", "--events").out
    assert not any(word in told for word in ("None", "null", "model call"))
    assert (shown.count("(erased)"), page.count("(erased)")) == (7, 6)


def test_an_erasure_of_many_events_says_how_many_more(move: Cli, store: Store) -> None:
    session = store.session("told")
    for number in range(15):
        session.fact("colour", number)
    move("erase", "-s", "told", "e2..e16", "--why", "t", "--yes")
    assert "e12 e13 and 3 more  (t)" in move("log", "told", "--events").out
