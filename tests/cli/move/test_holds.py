"""No surface gets around a hold."""

from collections.abc import Callable

import pytest

from tests.cli.conftest import Cli
from wakelog.errors import NotAllowedError
from wakelog.log.removal import delete, erase, prune
from wakelog.maintenance.holds import find_holds, hold_of, lift_hold, place_hold
from wakelog.store import Store

VERBS: dict[str, Callable[[Store, str], object]] = {
    "erase": lambda store, name: erase(store.resume(name).log, [3]),
    "prune": lambda store, name: prune(store.resume(name).log, 5),
    "delete": lambda store, name: store.delete(store.resume(name)),
    "log delete": lambda store, name: delete(store.resume(name).log),
}
COMMANDS = [
    ("erase", "fix-bug@1", "--why", "x", "--yes"),
    ("erase", "fix-bug@1", "--why", "x", "--cascade", "--yes"),
    ("delete", "fix-bug", "--yes"),
    ("redact", "fix-bug", "--yes"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_library_verbs_refuse_and_change_nothing(store: Store, verb: str) -> None:
    session = store.session("held")
    for n in range(6):
        session.fact(f"f{n}", n)
    place_hold(session, "case 17")
    before = session.head
    with pytest.raises(NotAllowedError) as caught:
        VERBS[verb](store, "held")
    assert (caught.value.kind, caught.value.hint) == ("held", "wakelog hold rm held")
    assert "case 17" in caught.value.message
    assert session.head == before
    lift_hold(session)
    VERBS[verb](store, "held")


@pytest.mark.parametrize("args", COMMANDS, ids=lambda a: " ".join(a[:1]))
def test_commands_refuse_with_exit_6(move: Cli, store: Store, args: tuple[str, ...]) -> None:
    session = Store(store.engine, clock=store.clock, redact=None).resume("fix-bug")
    session.message("user", "my key is ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    place_hold(session, "case 17")
    before = session.head
    result = move(*args, "--json")
    assert (result.code, result.error["kind"]) == (6, "held")
    assert session.head == before


def test_gc_leaves_a_held_session_alone_and_says_why(move: Cli, store: Store) -> None:
    place_hold(store.resume("nightly-05"), "case 17")
    planned = move("gc", "--max-size", "1KB", "--action", "delete", "--yes", "--json").data["planned"]
    [mine] = [p for p in planned if p["name"] == "nightly-05"]
    assert mine["action"] == "skip"
    assert "case 17" in mine["reason"]
    assert store.resume("nightly-05").status == "closed"


def test_a_rewind_does_not_lift_a_hold(store: Store) -> None:
    session = store.resume("fix-bug")
    place_hold(session, "case 17")
    session.rewind("@4")
    assert hold_of(session) is not None
    session.undo()
    lift_hold(session)
    session.rewind(session.head.seq - 2)
    assert hold_of(session) is None, "nor does it bring one back"


def test_what_a_held_fork_shares_cannot_be_erased_through_its_parent(store: Store) -> None:
    place_hold(store.resume("try-refresh"), "case 17")
    parent = store.resume("fix-bug")
    with pytest.raises(NotAllowedError, match="try-refresh is under a hold"):
        erase(parent.log, [3])
    with pytest.raises(NotAllowedError, match="try-refresh is under a hold"):
        prune(parent.log, 10)
    erase(parent.log, [parent.seq("last-tool")])


def test_a_fork_of_a_held_session_is_held(store: Store) -> None:
    session = store.resume("crash")
    place_hold(session, "case 17")
    fork = session.fork(name="crash-2")
    with pytest.raises(NotAllowedError):
        store.delete(fork)


def test_a_hold_goes_with_the_bundle(move: Cli, store: Store) -> None:
    place_hold(store.resume("crash"), "case 17")
    assert move("export", "crash", "-o", "crash.wakelog").code == 0
    assert move("import", "crash.wakelog", "--store", "elsewhere").code == 0
    assert move("delete", "crash", "--yes", "--store", "elsewhere").code == 6


def test_holds_in_every_status_are_found(store: Store) -> None:
    for name in ("nightly-02", "nightly-03", "nightly-07"):
        place_hold(store.resume(name), name)
    holds = find_holds(store)
    assert sorted(h.name for h in holds.found) == ["nightly-02", "nightly-03", "nightly-07"]
    assert {store.resume(h.session).status for h in holds.found} == {"closed", "archived", "paused"}
    assert len(holds.unreadable) == 1, "the tampered one"
