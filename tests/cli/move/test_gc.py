"""Retention from the command line: told first, done with --yes."""

from pathlib import Path

from tests.cli.conftest import Cli
from wakelog.store import Store


def _heads(store: Store) -> dict[str, bytes]:
    return {h.session: h.hash for h in store.sessions()}


def test_without_rules_everything_is_kept(move: Cli, store: Store) -> None:
    before = _heads(store)
    result = move("gc", "--yes", "--json")
    assert (result.code, result.data["planned"], result.data["policy"]) == (0, [], "everything is kept")
    assert _heads(store) == before


def test_dry_run_is_the_default_and_changes_nothing(move: Cli, store: Store) -> None:
    before = _heads(store)
    for flags in ((), ("--dry-run",), ("--dry-run", "--yes")):
        result = move("gc", "--older-than", "1h", "--action", "delete", *flags, "--json")
        assert result.data["dry_run"]
        assert any(p["action"] == "delete" for p in result.data["planned"])
    assert _heads(store) == before


def test_pruned_sessions_still_verify_and_are_not_planned_again(move: Cli, store: Store) -> None:
    data = move("gc", "--older-than", "1h", "--yes", "--json").data
    pruned = [a["session"] for a in data["applied"]]
    assert pruned
    assert all(a["done"] for a in data["applied"])
    for session in pruned:
        report = store.resume(session).verify()
        assert report.ok
        assert report.scope["pruned"]
    again = move("gc", "--older-than", "0h", "--json").data["planned"]
    assert not {p["session"] for p in again if p["action"] != "skip"} & set(pruned)


def test_settings_give_the_policy(move: Cli) -> None:
    Path("wakelog.toml").write_text('[retention]\nkeep = "1h"\naction = "archive"\nkeep_last = 3\n')
    data = move("gc", "--json").data
    assert data["policy"] == "archive closed or archived sessions untouched for 1h, but the newest 3 stay"
    assert {p["action"] for p in data["planned"]} == {"archive", "skip"}
    assert "untouched for 1h" in move("store", "info").out


def test_size_deletes_the_oldest_until_it_fits(move: Cli, store: Store) -> None:
    planned = move("gc", "--max-size", "380KB", "--action", "delete", "--json").data["planned"]
    doing = [p for p in planned if p["action"] == "delete"]
    assert doing == sorted(doing, key=lambda p: p["at"])
    assert move("gc", "--max-size", "380KB", "--action", "delete", "--yes").code == 0
    left = move("gc", "--max-size", "380KB", "--action", "delete", "--json").data["planned"]
    assert not [p for p in left if p["action"] == "delete"]
