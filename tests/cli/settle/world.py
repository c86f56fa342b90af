"""A small store that is the same each time: a call cut off, one that a late worker spoke of, one that waits for
approval, one that was approved, one still running, a question, and names that nobody should paste."""

import os
from pathlib import Path

import pytest

import wakelog
from tests.cli.look.world import HOSTILE, START_US, Clock, fixed_bytes
from wakelog.model import events as ev
from wakelog.store import Store

NOW_US = START_US + 3600 * 1_000_000


def build(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", fixed_bytes())
        with wakelog.open(path, clock=Clock()) as store:
            _billing(store)
            _deploy(store)
            _others(store)


def _asked(action: str, tool: str, given: object, *, approval: bool = False, key: str = "") -> ev.ActionRequested:
    return ev.ActionRequested(action=action, tool=tool, input=given, approval=approval, key=key)


def _billing(store: Store) -> None:
    s = store.session("billing", goal="bill order 4711")
    s.append(ev.TurnStarted(input="bill it"))
    s.append(_asked("charge-1a2b", "charge", {"order": 4711, "cents": 4200}, key="order-4711"))
    s.append(ev.ActionStarted(action="charge-1a2b"), ev.ActionUncertain(action="charge-1a2b"))
    s.append(_asked("charge-1a9c", "charge", {"order": 4712, "cents": 100}))
    s.append(ev.ActionStarted(action="charge-1a9c"), ev.ActionUncertain(action="charge-1a9c"))
    s.append(ev.ActionEvidence(action="charge-1a9c", outcome="succeeded", output={"receipt": 7}))
    s.append(ev.TurnEnded(outcome="interrupted"))


def _deploy(store: Store) -> None:
    s = store.session("deploy")
    s.append(ev.TurnStarted(input="ship it"))
    s.append(_asked("release-77", "release", {"version": "2.1"}, approval=True))
    s.append(_asked("notify-78", "notify", {"to": "all"}, approval=True), ev.ActionApproved(action="notify-78"))
    s.append(ev.TurnEnded(outcome="interrupted"))


def _others(store: Store) -> None:
    store.session("quiet")
    s = store.session("busy")
    s.append(ev.InputRequested(request="which", prompt="which of the two?", options=("a", "b")))
    s.append(_asked("crawl-5", "crawl", {"url": "https://example.com"}), ev.ActionStarted(action="crawl-5"))
    odd = store.session(f"odd {HOSTILE}")
    odd.append(_asked(f"x; rm -rf {HOSTILE}", "shell", HOSTILE))
    odd.append(ev.ActionUncertain(action=f"x; rm -rf {HOSTILE}"))
