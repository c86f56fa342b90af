"""The index's statements translated for PostgreSQL.

The tables are read from schema.sql, so both databases always have the same columns. Two things are different: the
namespace is first in every key, and every statement is about one namespace. So a table that is read becomes its rows of
the namespace, `(select … from wi_event where ns = $1)`, which the planner optimises away, and an insert gets the
namespace as its first value. The tables are called wi_…, because the log's own tables in the same database are called
wl_….

Texts may contain U+0000, which PostgreSQL does not accept. It is stored as two characters that sort like it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from wakelog.index.connection import CAPITALS

_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_TABLE = re.compile(r"create table (wl_\w+) \((.*?)\n\) strict", re.DOTALL)
_COLUMN = re.compile(r"\s*(\w+) +(integer|text|blob|tsvector)\b([^,]*)", re.DOTALL)
_KEY = re.compile(r"primary key \(([^)]*)\)")
_SENT_AS = {"tsvector": "text"}
_TYPES = {"integer": "bigint", "text": "text", "blob": "bytea", "tsvector": "tsvector"}

_GLOB = re.compile(r"\[(?P<no>\^?+)(?P<inside>.[^\]]*+)\]|.", re.DOTALL)

# Columns that are looked up and are not keys. None of them can be a text of unlimited length.
_LOOKED_UP = [
    ("wl_session", "id"),
    ("wl_session", "root"),
    ("wl_session", "damaged"),
    ("wl_touch", "key"),
    ("wl_lineage", "holder"),
]

WORDS_INDEX = "wi_text_words"


class TableShape(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    types: tuple[str, ...]
    optional: frozenset[str]
    key: tuple[str, ...]


def _tables(schema: str) -> dict[str, TableShape]:
    out = {}
    for name, inside in _TABLE.findall(re.sub(r"--[^\n]*", "", schema)):
        key = _KEY.search(inside)
        columns = [match.groups() for match in map(_COLUMN.match, _KEY.sub("", inside).split(",")) if match]
        alone = [column for column, _, rest in columns if "primary key" in rest]
        out[name] = TableShape(
            tuple(column for column, _, _ in columns),
            tuple(_TYPES[kind] for _, kind, _ in columns),
            frozenset(column for column, _, rest in columns if "not null" not in rest and "primary key" not in rest),
            tuple(key[1].split(", ")) if key else tuple(alone),
        )
    return out


# Words are a column of their texts here (words.py).
TABLES = _tables(_SCHEMA.replace("body text not null", "body text not null, words tsvector not null"))


def schema() -> list[str]:
    """The statements that create the tables, if they do not exist."""
    out = []
    for name, table in TABLES.items():
        columns = [
            f"{column} {kind}{'' if column in table.optional else ' not null'}"
            for column, kind in zip(table.columns, table.types, strict=True)
        ]
        key = ", ".join(("ns", *table.key))
        body = ", ".join(["ns text not null", *columns, f"primary key ({key})"])
        out.append(f"create table if not exists {table_name(name)} ({body})")
    return (
        out
        + [
            f"create index if not exists {table_name(table)}_{column} on {table_name(table)} (ns, {column})"
            for table, column in _LOOKED_UP
        ]
        + [f"create index if not exists {WORDS_INDEX} on {table_name('wl_text')} using gin (words)"]
    )


def table_name(table: str) -> str:
    return f"wi_{table.removeprefix('wl_')}"


# Values


def to_stored(value: Any) -> Any:
    """A value as PostgreSQL stores it."""
    if type(value) is str:
        return value.replace("\1", "\1\2").replace("\0", "\1\1") if "\1" in value or "\0" in value else value
    return int(value) if type(value) is bool else value


def from_stored(value: Any) -> Any:
    """The original of a stored value."""
    if type(value) is str and "\1" in value:
        return re.sub("\1([\1\2])", lambda match: "\0" if match[1] == "\1" else "\1", value)
    return value


def _json_to_stored(text: str) -> str:
    if "\\u0000" not in text and "\\u0001" not in text:
        return text
    return msgspec.json.encode([[to_stored(value) for value in row] for row in msgspec.json.decode(text)]).decode()


def as_regex(glob: str) -> str:
    """A GLOB pattern as a regular expression. A pattern that never matches becomes one that never matches."""
    out = []
    for token in _GLOB.finditer(glob):
        if token["inside"] is not None:
            out.append(_one_of(token["inside"], bool(token["no"])))
        elif token[0] == "[":
            return "^(?!)"  # it is never closed
        else:
            out.append({"*": ".*", "?": "."}.get(token[0]) or _literal(token[0]))
    return f"^{''.join(out)}$"


def _one_of(inside: str, negated: bool) -> str:
    """A bracket, spelled out as ranges of single characters."""
    ranges, at = [], 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            first, last, at = inside[at], inside[at + 2], at + 3
        else:
            first = last = inside[at]
            at += 1
        if first <= last:
            ranges.append(f"{_code(first)}-{_code(last)}")
    return f"[{'^' if negated else ''}{''.join(ranges)}]" if ranges else "." if negated else "(?!)"


def _literal(char: str) -> str:
    return char if char.isalnum() else _code(char)


def _code(char: str) -> str:
    return f"\\U{ord(char):08x}"


# Statements

_READ = re.compile(r"\b(from|join)\s+(wl_\w+)")
_INSERT = re.compile(r"insert into (wl_\w+) values \(([^)]*)\)")
_CHANGE = re.compile(r"(delete from|update) (wl_\w+)(.*?)\bwhere\b", re.DOTALL)
_HAS_TEXT = re.compile(r"has_text\(((?:[^(),]|\([^()]*\))+), (:\w+)\)")
_TOKEN = re.compile(r"'[^']*'|json_each\(:(?P<rows>\w+)\)|\bglob :(?P<glob>\w+)|(?<!:):(?P<name>[a-z_]+)|(?P<mark>\?)")


@functools.lru_cache(maxsize=1000)
def _translate(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement about one namespace, $1, and the types of its values if it inserts into a table."""
    sql = sql.strip().replace("cross join", "join")
    types: tuple[str, ...] = ()
    if inserted := _INSERT.match(sql):
        table = TABLES[inserted[1]]
        types = table.types
        names = ", ".join(("ns", *table.columns))
        sql = f"insert into {inserted[1]} ({names}) values ($1::text, {inserted[2]}){sql[inserted.end() :]}"
        sql = sql.replace("on conflict (", "on conflict (ns, ")
    elif changed := _CHANGE.match(sql):
        sql = f"{changed[1]} {changed[2]}{changed[3]}where ns = $1::text and {sql[changed.end() :]}"
    else:
        sql = _HAS_TEXT.sub(rf"(strpos(translate(\1, '{CAPITALS}', '{CAPITALS.lower()}'), \2) > 0)", sql)
        sql = _READ.sub(_rows_of, sql)
    return re.sub(r"\bwl_(?=\w)", "wi_", sql), types


def _rows_of(match: re.Match[str]) -> str:
    columns = ", ".join(TABLES[match[2]].columns)
    return f"{match[1]} (select {columns} from {match[2]} where ns = $1::text)"


def bind_values(sql: str, values: Sequence[Any] | Mapping[str, Any], ns: str) -> tuple[str, list[Any]]:
    """A statement and its values for PostgreSQL, each with an explicit type."""
    text, types = _translate(sql)
    out: list[Any] = [ns]
    places: dict[tuple[str, str], int] = {}
    marks = iter(range(len(values)))

    def place(key: tuple[str, str], value: Any) -> int:
        if key not in places:
            out.append(value)
            places[key] = len(out)
        return places[key]

    def replaced(token: re.Match[str]) -> str:
        form = token.lastgroup
        if form is None:
            return token[0]
        if form == "mark":
            assert not isinstance(values, Mapping)
            mark = next(marks)
            value = to_stored(values[mark])
            return f"${place((form, str(mark)), value)}::{types[mark] if types else _type(value)}"
        assert isinstance(values, Mapping)
        name = token[form]
        value = values[name]
        if form == "rows":
            if value is None:
                return "json_array_elements('[]'::json)"
            return f"json_array_elements(${place((form, name), _json_to_stored(value))}::json)"
        if form == "glob":
            return f"~ ${place((form, name), as_regex(to_stored(value)))}::text" if value is not None else "~ null"
        return f"${place((form, name), to_stored(value))}::{_type(value)}" if value is not None else "null"

    return _TOKEN.sub(replaced, text), out


@functools.lru_cache(maxsize=100)
def for_many(sql: str) -> str:
    """An insert that takes all rows at once, as one list for each column."""
    inserted = _INSERT.match(sql)
    assert inserted is not None, sql
    table, rest = TABLES[inserted[1]], sql[inserted.end() :]
    lists = ", ".join(f"${at}::{_SENT_AS.get(kind, kind)}[]" for at, kind in enumerate(table.types, 2))
    names = ", ".join(table.columns)
    values = ", ".join(f"given.{column}::{kind}" for column, kind in zip(table.columns, table.types, strict=True))
    text = (
        f"insert into {inserted[1]} (ns, {names}) select $1::text, {values}"
        f" from unnest({lists}) as given ({names}){rest.replace('on conflict (', 'on conflict (ns, ')}"
    )
    return re.sub(r"\bwl_(?=\w)", "wi_", text)


def _type(value: Any) -> str:
    return {str: "text", int: "bigint", bool: "bigint", bytes: "bytea", float: "float8"}[type(value)]
