"""Taking a fork's result back from the command line, beyond how it looks."""

from tests.cli.conftest import Cli
from tests.cli.look.test_fields import FIELDS
from wakelog.log.removal import erase
from wakelog.store import Store


def test_the_answer_has_exactly_the_documented_fields(move: Cli) -> None:
    for args in (("--dry-run",), ("--yes",)):
        data = move("adopt", "try-refresh", "--force", "--json", *args).data
        assert data.keys() == FIELDS["adopt"]
        assert data["done"] == ("--yes" in args)


def test_what_is_said_before_is_what_is_done(move: Cli, store: Store) -> None:
    told = move("adopt", "try-refresh", "--force", "--dry-run", "--json").data
    before = store.resume("fix-bug")
    assert before.head.seq == told["head"]
    assert move("adopt", "try-refresh", "--force", "--yes").code == 0
    session = store.resume("fix-bug")
    kinds = [e.kind for e in session.events(after=told["head"])]
    assert kinds[:2] == ["history.rewound", "history.adopted"]
    assert {kind: kinds.count(kind) for kind in kinds[2:]} == told["copied"]
    changed = {c.pointer for c in session.diff(told["head"], session.head.seq).changes}
    # Decisions stand under the seq of their copy.
    assert {c["pointer"] for c in told["changes"] if "/decisions_made/" not in c["pointer"]} <= changed


def test_what_could_not_be_copied_makes_it_done_in_part(move: Cli, store: Store) -> None:
    fork = store.resume("try-refresh")
    erase(fork.log, [fork.messages()[-1].seq])
    result = move("adopt", "try-refresh", "--force", "--yes")
    assert result.code == 7
    assert "1 whose content was erased or pruned" in result.out
    assert store.resume("fix-bug").verify().ok


def test_a_fork_can_be_adopted_as_it_was_at_a_turn(move: Cli, store: Store) -> None:
    fork = store.resume("try-refresh")
    with fork.turn(user="and then"):
        fork.set_goal("something else")
    assert move("adopt", "try-refresh@5", "--force", "--yes").code == 0
    session = store.resume("fix-bug")
    assert session.state().goal != "something else"
    assert session.messages()[-1].text == "Works, but writes to Redis on every request."
