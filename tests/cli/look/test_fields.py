"""The JSON is what docs/reference/json.md says it is, field for field."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "json.md"


def _documented() -> dict[str, set[str]]:
    """Section → the fields of its table."""
    sections = re.split(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        name: set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        for name, text in zip(sections[1::2], sections[2::2], strict=True)
    }
    found["status"] = found["session"]
    found["ps"] = found["session"]
    found["tail"] = found["event"]
    found["record"] |= found["event"]
    found["step"] |= found["event"]
    return found


FIELDS = _documented()


@pytest.mark.parametrize(
    ("section", "args"),
    [
        ("status", ("status", "fix-auth")),
        ("ls", ("ls",)),
        ("log", ("log", "fix-auth")),
        ("log", ("log", "fix-auth", "--events")),
        ("show", ("show", "fix-auth@4")),
        ("show", ("show", "-s", "fix-auth", "e52")),
        ("state", ("state", "-s", "fix-auth")),
        ("diff", ("diff", "fix-auth@4")),
        ("compare", ("compare", "fix-auth@4")),
        ("compare", ("compare", "fix-auth", "try-redis")),
        ("attempts", ("attempts", "fix-auth@4")),
        ("blame", ("blame", "-s", "fix-auth")),
        ("why", ("why", "-s", "fix-auth", "e57")),
        ("taint", ("taint", "-s", "fix-auth")),
        ("context", ("context", "fix-auth@4", "--diff", "--shape", "openai")),
        ("context", ("context", "fix-auth")),
        ("brief", ("brief", "fix-auth")),
        ("compact", ("compact", "fix-auth")),
        ("search", ("search", "nullable")),
        ("query", ("query", "select 1")),
        ("ps", ("ps",)),
    ],
)
def test_data_has_exactly_the_documented_fields(look: Cli, section: str, args: tuple[str, ...]) -> None:
    result = look(*args, "--json")
    assert result.code == 0
    assert result.json.keys() == {"schema", "store", "data", "next", "warnings"}
    assert result.json["schema"] == f"wakelog.{args[0]}/1"
    items = result.data if isinstance(result.data, list) else [result.data]
    assert items
    for item in items:
        assert item.keys() == FIELDS[section]


def test_tail_gives_one_documented_event_a_line(look: Cli) -> None:
    for flag in ("--json", "--ndjson"):
        records = look("tail", "fix-auth", flag).records
        assert len(records) == 10
        assert all(r.keys() == FIELDS["tail"] | {"schema"} for r in records)


def test_objects_inside_have_the_documented_fields(look: Cli) -> None:
    log = look("log", "fix-auth", "--json").data
    _has(log["session"], "session")
    for turn in log["turns"]:
        _has(turn, "turn")
        _has(turn["cost"], "cost")
    _has(log["turns"][0]["cost"]["money"], "money")
    for event in look("log", "fix-auth", "--json", "--events").data["events"]:
        _has(event, "event")
    for record in look("show", "fix-auth@4", "--json").data["events"]:
        _has(record, "record")
    for change in look("diff", "fix-auth@4", "--json").data["changes"]:
        _has(change, "change")
        _has(change["writer"], "writer")
    for pair in look("compare", "fix-auth@4", "--json").data["pairs"]:
        _has(pair, "pair")
        _has(pair["divergence"], "divergence")
        for course in (pair["a"], pair["b"]):
            _has(course, "course")
            for step in course["steps"]:
                _has(step, "coursestep")
    for attempt in look("attempts", "fix-auth@4", "--json").data["attempts"]:
        assert attempt.keys() == FIELDS["course"] - {"steps"} | {"divergence"}
    for key in look("blame", "-s", "fix-auth", "--json").data["keys"]:
        assert key.keys() == {"pointer", "value", "writer"}
        _has(key["writer"], "writer")
    for hit in look("search", "nullable", "--json").data["hits"]:
        _has(hit, "hit")
    for item in look("context", "fix-auth", "--json").data["items"]:
        _has(item, "item")
    for part in look("brief", "fix-auth", "--json").data["sections"]:
        assert part.keys() == {"name", "title", "total", "lines", "rest"}
    why = look("why", "-s", "fix-auth", "e57", "--json").data
    for section in ("step", "origin"):
        assert why[f"{section}s"]
        for each in why[f"{section}s"]:
            _has(each, section)
    for item in look("taint", "-s", "fix-auth", "--json").data["items"]:
        _has(item, "touched")
    blast = look("invalidate", "fix-auth@4", "--dry-run", "--json").data
    _has(blast, "invalidate")
    for kept in (*blast["resting"], *blast["safe"]):
        _has(kept, "kept")
    _has(look("endorse", "fix-auth@4", "--dry-run", "--json").data, "endorse")


def _has(value: Any, section: str) -> None:
    assert value.keys() == FIELDS[section], section


def test_pending_actions_and_flags_have_all_their_fields(look: Cli) -> None:
    data = look("status", "deploy-bot", "--json").data
    names = {"action", "tool", "status", "effect", "seq", "turn", "attempt", "key", "input_hash", "prompt"}
    assert [each.keys() for each in data["pending"]] == [names, names]
    assert data["flags"][0].keys() == {"flag", "rule", "message", "severity", "seq"}


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        (("log", "fix-auth"), FIELDS["turn"] | {"session"}),
        (("log", "fix-auth", "--events"), FIELDS["event"]),
        (("show", "fix-auth@1"), FIELDS["record"]),
        (("search", "nullable"), FIELDS["hit"]),
        (("why", "fix-auth@4"), FIELDS["step"]),
        (("taint", "-s", "fix-auth"), FIELDS["touched"]),
        (("search", "nullable", "-c"), {"session", "name", "hits"}),
        (("query", "select 1 as one"), {"row"}),
        (("context", "fix-auth"), FIELDS["item"] | {"session"}),
        (("ls",), FIELDS["ls"]),
    ],
)
def test_ndjson_gives_one_record_a_line(look: Cli, args: tuple[str, ...], fields: set[str]) -> None:
    records = look(*args, "--ndjson").records
    assert records
    for record in records:
        assert record.pop("schema") == f"wakelog.{args[0]}/1"
        assert record.keys() == fields


def test_unknown_is_null_and_times_are_rfc_3339(look: Cli) -> None:
    turn = look("log", "fix-auth@5..@5", "--json").data["turns"][0]
    assert turn["cost"]["money"] is None
    assert turn["cost"]["tokens_out"] is None
    assert re.fullmatch(r"2026-11-15T17:\d\d:\d\d\.\d{6}Z", turn["started_at"])
    assert look("log", "hello", "--json").data["session"]["budget"]["money"] == {"spent": None, "limit": None}


def test_money_is_a_decimal_string_with_its_currency(look: Cli) -> None:
    [turn] = look("log", "fix-auth@4..@4", "--json").data["turns"]
    assert turn["cost"]["money"] == {"amount": "0.310000", "currency": "USD", "estimate": True}


def test_next_goes_on_where_a_page_ended(look: Cli) -> None:
    first = look("log", "fix-auth", "-n", "2", "--json").json
    assert [t["turn"] for t in first["data"]["turns"]] == [6, 5]
    rest = look("log", f"fix-auth{first['next']}", "--json").json
    assert [t["turn"] for t in rest["data"]["turns"]] == [4, 3, 2, 1]
    assert rest["next"] is None
