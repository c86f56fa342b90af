"""Finds the adapter that takes over a framework's database, so that its programs can continue on wakelog.

The importers read such a database without the framework, which is enough to look at the history. To continue it, a
session needs everything that the framework's interface returns. So if the framework is installed, it reads its database
itself, and its adapter stores the result. Such an adapter has a module with the functions of `Takeover`.
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
    """The functions of an adapter's takeover module."""

    def take_over(self, store: Store, place: str, *, again: bool = False) -> ImportReport:
        """Takes over what is new, from a file or from a database on a server."""
        ...

    def recognises(self, url: str) -> bool:
        """True if a database on a server is this framework's."""
        ...


class Framework(msgspec.Struct, frozen=True):
    """A framework whose databases can be taken over."""

    title: str
    module: str
    install: str
    """Packages to install for databases in files."""
    install_for_servers: str
    """Packages to install for databases on a server."""


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
"""By the name of the importers' format."""


def takeover_of(format: str) -> Takeover | None:
    """The takeover module for a format; None if its framework is not installed."""
    framework = FRAMEWORKS.get(format)
    try:
        return cast(Takeover, importlib.import_module(framework.module)) if framework else None
    except ImportError:
        return None


def framework_at(url: str) -> str:
    """The format of a database on a server. UnsupportedError if no installed framework recognises it."""
    installed = [(name, found) for name in FRAMEWORKS if (found := takeover_of(name)) is not None]
    missing_driver: UnsupportedError | None = None
    for name, takeover in installed:
        try:
            if takeover.recognises(url):
                return name
        except UnsupportedError as exc:
            missing_driver = missing_driver or exc
    if missing_driver is not None:
        raise missing_driver
    titles = " and ".join(framework.title for framework in FRAMEWORKS.values())
    raise UnsupportedError(
        f"databases on a server are read for {titles}, where these are installed; this one is of neither"
        if installed
        else f"a database on a server is read by its framework, and neither {titles.replace(' and ', ' nor ')} is here",
        kind="unknown-format",
        hint=" or ".join(f"pip install {framework.install_for_servers}" for framework in FRAMEWORKS.values()),
    )
