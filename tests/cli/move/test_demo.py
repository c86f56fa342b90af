"""The demos: the same each time, whole, and every command they suggest works."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.cli.move.conftest import SMALL
from wakelog.cli.demo import DEMOS, build
from wakelog.engines.memory import MemoryEngine
from wakelog.store import Store


@pytest.mark.parametrize("name", [n for n in SMALL if n != "tampered"])
def test_built_twice_is_the_same(name: str) -> None:
    states = []
    for _ in range(2):
        store = Store(MemoryEngine())
        build(name, store.engine, at_us=1_800_000_000_000_000)
        heads = list(store.sessions())
        states.append([(h.session, h.name, h.seq, h.at, store.resume(h.session).log.state_hash()) for h in heads])
    assert states[0] == states[1]


@pytest.mark.parametrize("name", [n for n in SMALL if n != "tampered"])
def test_sessions_verify(store: Store, name: str) -> None:
    session = store.resume(DEMOS[name].first or name)
    assert session.verify().ok


@pytest.mark.parametrize("name", SMALL)
def test_suggested_commands_work(move: Cli, name: str) -> None:
    assert move("demo", name, "--into", "alone").code == 0
    for command in DEMOS[name].commands:
        result = move("--store", "alone", *command.split())
        assert result.code == (4 if name == "tampered" else 0), (command, result.out, result.err)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "store info",
        "gc --older-than 1h",
        "ps",
    ],
)
def test_one_damaged_session_does_not_hide_the_others(move: Cli, command: str) -> None:
    result = move(*command.split())
    assert result.code == 0, result.err


def test_fix_bug_is_what_it_says(store: Store) -> None:
    session = store.resume("fix-bug")
    state = session.state()
    assert session.head.turn == 12
    assert len(session.history.attempts(6)) == 2
    assert (len(state.files_modified), len(state.decisions_made), len(state.dead_ends)) == (3, 2, 1)
    assert 0 < state.budget.spent["usd_micros"] < state.budget.limits["usd_micros"]
    assert [h.name for h in store.engine.children(session.id)] == ["try-refresh"]
    assert any(e.kind == "history.compacted" for e in session.events())


def test_crash_repeats_no_effect(store: Store) -> None:
    session = store.resume("crash")
    charges = [e for e in session.events(tool="charge_card") if e.kind == "action.requested"]
    assert len(charges) == 1
    assert [p.status for p in session.state().pending_actions.values()] == ["uncertain"]


def test_injection_is_flagged_before_anything_is_sent(store: Store) -> None:
    session = store.resume("injection")
    kinds = [e.kind for e in session.events(tool="send_email")]
    assert kinds == ["action.requested", "action.denied"]
    assert "untrusted-effect" in session.state().flags


def test_fleet_has_every_kind_of_trouble(store: Store) -> None:
    heads = [h for h in store.sessions() if h.name.startswith("nightly")]
    assert len(heads) == 40
    assert {h.status for h in heads} == {"active", "closed", "archived", "paused"}


def test_demo_does_not_go_into_a_store_of_ones_own(move: Cli) -> None:
    with wakelog.open("mine") as mine:
        mine.session("real work")
    result = move("demo", "--into", "mine", "--json")
    assert (result.code, result.error["kind"]) == (6, "not-a-scratch-store")


def test_demo_again_changes_nothing(move: Cli, store: Store) -> None:
    before = {h.session: h.hash for h in store.sessions()}
    assert move("demo", "all", "--into", "demo", env={"WAKELOG_STORE": ""}).code in (0,)
    after = {h.session: h.hash for h in store.sessions()}
    assert {s: h for s, h in after.items() if s in before} == before
    big = store.resume("big").head
    assert (big.seq, big.turn) == (100_000, 1000)


def test_the_ordinary_demo_has_at_most_one_flag_above_info_and_the_injection_its_alarm(move: Cli, store: Store) -> None:
    told = move("watch", "--once", "--all", "--dry-run", "--json").data
    grave = [
        (f["name"], f["severity"]) for f in told if f["severity"] != "info" and f["name"] in ("fix-bug", "injection")
    ]
    assert grave.count(("fix-bug", "warning")) <= 1
    assert ("fix-bug", "alarm") not in grave
    assert ("injection", "alarm") in grave


def test_learning_is_what_it_says(store: Store) -> None:
    today = store.resume("export-today")
    shown = [e.body["lines"] for e in today.events() if e.kind == "knowledge.recalled"]
    assert "dead_end" in shown[0]
    assert shown[1] == ["recipe"]
    told = [e for e in today.events() if e.kind == "message.added" and e.body["role"] == "system"]
    assert "a lock around the export" in str(today.log.value(told[0], told[0].body["content"]))
    assert "mostly after pip install" in str(today.log.value(told[1], told[1].body["content"]))
    plan = store.plans.get("refund")
    assert (plan.endorsed, plan.runs, plan.succeeded, plan.sources_left) == (True, 1, 1, 3)
    given = [e.body["input"] for e in store.resume("refund-5000").events() if e.kind == "action.requested"]
    assert given[0] == {"order": "order-5000", "shop": "main"}
    assert given[1] == {"ticket": "ticket-9000", "note": "refund of order-5000"}


def test_a_demo_goes_into_the_store_of_a_url(move: Cli, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path / 'a b'}"
    done = move("demo", "fix-bug", "--into", url)
    assert done.code == 0
    assert not Path("sqlite:").exists()
    assert f"export WAKELOG_STORE='{url}'" in done.out
    assert "delete the folder" not in done.out
    assert move("--store", url, "log", "fix-bug").code == 0
