"""The schema and every statement avoid words that engines which speak PostgreSQL's protocol refuse in general, by their
documents (CockroachDB, YugabyteDB, Aurora DSQL). What a sharded PostgreSQL makes of a statement, words do not tell:
test_sharded.py parses what is sent."""

import re

import pytest

from wakelog.engines.postgres import migrations as migrating
from wakelog.engines.postgres import statements

SCHEMA = [*statements.schema(), *(text for step in migrating.STEPS for text in step.statements)]
STATEMENTS = {n: v for n, v in vars(statements).items() if n.isupper() and n[0] != "_" and isinstance(v, str)}

REFUSED = {
    "sequences": r"\b(serial|bigserial|smallserial|nextval|generated\s+(always|by\s+default))\b",
    "triggers and procedures": r"\b(trigger|procedure|plpgsql|\bdo\s+\$)\b",
    "foreign keys": r"\b(references|foreign\s+key)\b",
    "locks": r"\b(advisory|for\s+update|for\s+share|lock\s+table)\b",
    "recursive queries": r"\brecursive\b",
    "temporary tables": r"\btemp(orary)?\b",
    "savepoints": r"\bsavepoint\b",
    "truncate": r"\btruncate\b",
    "materialised views": r"\bmaterialized\b",
    "partitions and inheritance": r"\b(partition\s+by|inherits)\b",
    "extensions": r"\bextension\b",
    "exclusion constraints": r"\bexclude\b",
    "jsonb in the write path": r"\bjsonb?\b",
    "collations": r"\bcollate\b",
}
UNSHARDED = {"wl_version", "wl_migration", "wl_mark", "wl_name", "wl_note"}
"""A few rows in all; names, which are found by themselves; and what servers share."""


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_that_is_refused_elsewhere_is_used(what: str) -> None:
    for text in [*SCHEMA, *STATEMENTS.values()]:
        assert not re.search(REFUSED[what], text, re.IGNORECASE), text


def test_the_shard_key_leads_every_key_and_every_unique_index() -> None:
    tables = [s for s in SCHEMA if "create table" in s]
    assert len(tables) > 5
    for table in tables:
        name = re.search(r"create table if not exists (\w+)", table)
        key = re.search(r"primary key \(([^)]*)\)", table)
        assert name is not None
        if name[1] not in UNSHARDED:
            assert key is not None, table
            assert key[1].startswith("ns, root, "), table
    for index in (s for s in SCHEMA if "create" in s and "index" in s):
        assert "unique" not in index
        assert " where " not in index


def test_every_value_has_its_type_told() -> None:
    for name, text in STATEMENTS.items():
        for place in re.finditer(r"\$\d+(?!\d)", text):
            assert text[place.end() : place.end() + 2] == "::", f"{name}: {place[0]} at {place.start()}"


def test_what_is_said_about_a_session_names_its_shard() -> None:
    for name, text in STATEMENTS.items():
        if re.search(r"\b(from|into|update) wl_(commit|session|snapshot|heartbeat|title|commit_id)\b", text):
            assert "ns" in text, name
            if name not in ("CHANGES", "NEWEST", "NEWEST_TIME", "NEXT_SPACE", "HEARD"):  # clearly about all shards
                assert "root" in text, name
