"""The keywords of `Store.session` and `Store.resume`, for the types of their overloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from wakelog.monitors.budgets import Amount
from wakelog.session.data import Migrations


class ResumeKeywords(TypedDict, total=False):
    """The keywords of `Store.resume`."""

    version: int
    migrate: Migrations | None
    even_damaged: bool


class SessionKeywords(TypedDict, total=False):
    """The keywords of `Store.session`."""

    version: int
    migrate: Migrations | None
    goal: str | None
    agent: str
    labels: Mapping[str, str] | None
    limits: Mapping[str, Amount] | None
    spawner: str
    occurred_at: int
    folder: str | None
