"""Which adapter takes over the database of a framework, so that its programs go on here where they were.

The importers read such a database without its framework, to look at it. To go on, a session has to hold everything that
the framework's own interface gives. So where the framework is installed, it reads its database itself, and its adapter
stores that. An adapter that can do so has a module with `take_over`, and `recognises` for databases of a server.
"""

from __future__ import annotations

import importlib
from typing import Protocol, cast

import msgspec

from wakelog.errors import UnsupportedError
from wakelog.importers.transcript_import import ImportReport
from wakelog.store import Store

SERVERS = ("postgresql://", "postgres://")


class Takeover(Protocol):
    """What the module of an adapter has."""

    def take_over(self, store: Store, place: str, *, again: bool = False) -> ImportReport:
        """Takes over what is not here yet from a file, or from a database of a server."""
        ...

    def recognises(self, url: str) -> bool:
        """Whether a database of a server is this framework's."""
        ...


class Framework(msgspec.Struct, frozen=True):
    """A framework whose databases can be taken over."""

    title: str
    module: str
    install: str
    """What has to be installed for databases in files,"""
    install_for_servers: str
    """and for those on a server."""


FRAMEWORKS = {
    "langgraph": Framework(
        "LangGraph",
        "wakelog.adapters.langgraph.takeover",
        "'wakelog[langgraph]' langgraph-checkpoint-sqlite",
        "'wakelog[langgraph]' langgraph-checkpoint-postgres",
    ),
    "adk": Framework(
        "Google ADK",
        "wakelog.adapters.adk.takeover",
        "'wakelog[adk]' aiosqlite 'sqlalchemy[asyncio]'",
        "'wakelog[adk]' asyncpg 'sqlalchemy[asyncio]'",
    ),
}
"""By the name of the format that the importers read."""


def takeover_of(format: str) -> Takeover | None:
    """How a database of this format is taken over; None where its framework is not installed."""
    framework = FRAMEWORKS.get(format)
    try:
        return cast(Takeover, importlib.import_module(framework.module)) if framework else None
    except ImportError:
        return None


def framework_at(url: str) -> str:
    """The format of a database on a server; UnsupportedError where no framework that is installed knows it."""
    asked = [(name, found) for name in FRAMEWORKS if (found := takeover_of(name)) is not None]
    unread: list[UnsupportedError] = []
    for name, found in asked:
        try:
            if found.recognises(url):
                return name
        except UnsupportedError as exc:  # its driver is missing
            unread.append(exc)
    if unread:
        raise unread[0]
    titles = " and ".join(each.title for each in FRAMEWORKS.values())
    raise UnsupportedError(
        f"databases on a server are read for {titles}, where these are installed; this one is of neither"
        if asked
        else f"a database on a server is read by its framework, and neither {titles.replace(' and ', ' nor ')} is here",
        kind="unknown-format",
        hint=" or ".join(f"pip install {each.install_for_servers}" for each in FRAMEWORKS.values()),
    )
