"""Shell completion by click: sessions, places in them, keys of the state, checkpoints.

Completion must never fail: on any error it offers nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from wakelog.cli.quick_completion import CHECKPOINT, MARKS, MAX_ITEMS, describe_session

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _from_store(offer: Callable[[Any, click.Context, str], Iterator[CompletionItem]]) -> Complete:
    """A completion that reads the store of this command line."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from wakelog.store import open as open_store
        from wakelog.store.url import chosen_url, default_url, user_store

        with contextlib.suppress(Exception):
            named = ctx.params.get("store_url") or ctx.meta.get("wakelog.store") or _store_option(ctx)
            url = named or chosen_url() or user_store(must_exist=True) or default_url()
            with open_store(url, create=False) as store:
                return list(offer(store, ctx, incomplete))[:MAX_ITEMS]
        return []

    return complete


def _store_option(ctx: click.Context) -> str | None:
    """The value of `--store`, here or in a command above."""
    at: click.Context | None = ctx
    while at is not None:
        if at.params.get("store_url"):
            return str(at.params["store_url"])
        at = at.parent
    return None


def _sessions(store: Any, ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    for head in sorted(store.sessions(), key=lambda h: h.at, reverse=True):
        if str(head).startswith(incomplete):
            yield CompletionItem(str(head), help=describe_session(head.status, head.turn, head.at))


def _selectors(store: Any, ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Sessions and places; after an @, the turns of that session."""
    name, at, typed = incomplete.partition("@")
    if not at:
        yield from _sessions(store, ctx, incomplete)
        yield from _places(store, ctx, incomplete)
        return
    session = _session(store, ctx, name)
    for turn in range(session.head.turn, 0, -1):
        if str(turn).startswith(typed):
            yield CompletionItem(f"{name}@{turn}", help=_turn_input(session, turn))
        if turn < session.head.turn - 20 and not typed:
            return


def _turn_input(session: Any, turn: int) -> str:
    from wakelog.cli.text import fit
    from wakelog.timeline.points import attempts_of

    first = session.log.entry(attempts_of(session.log, turn)[0].first)
    return fit(str(first.body.get("input") or ""), 40)


def _places(store: Any, ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    session = _session(store, ctx, "")
    if CHECKPOINT.startswith(incomplete[:3]):  # reading the state can be slow
        for name, seq in session.log.state()["checkpoints"].items():
            if f"{CHECKPOINT}{name}".startswith(incomplete):
                yield CompletionItem(f"{CHECKPOINT}{name}", help=f"e{seq}")
    for word in MARKS:
        if word.startswith(incomplete):
            yield CompletionItem(word)


def _checkpoints(store: Any, ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    for name, seq in _session(store, ctx, "").log.state()["checkpoints"].items():
        if name.startswith(incomplete):
            yield CompletionItem(name, help=f"e{seq}")


def _keys(store: Any, ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """One level of the state at a time, like folders."""
    from wakelog.state.patch import escape, get

    above = incomplete.rpartition("/")[0]
    node = get(_session(store, ctx, "").log.state(), above)
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        pointer = f"{above}/{escape(str(key))}"
        if pointer.startswith(incomplete):
            yield CompletionItem(pointer, help=type(value).__name__)


def _session(store: Any, ctx: click.Context, name: str) -> Any:
    name = name or ctx.params.get("session_name") or "."
    if name not in (".", "-"):
        return store.resume(name)
    newest = sorted(store.sessions(), key=lambda h: h.at, reverse=True)
    return store.resume(newest[0 if name == "." else 1].session)


def _settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wakelog.config.settings import SETTINGS

    return [CompletionItem(s.key, help=s.doc) for s in SETTINGS.values() if s.key.startswith(incomplete)]


def _demos(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from wakelog.cli.demo import DEMOS

    items = [CompletionItem(d.name, help=d.shows) for d in DEMOS.values()]
    return [i for i in (*items, CompletionItem("all")) if i.value.startswith(incomplete)]


complete_session: Complete = _from_store(_sessions)
complete_selector: Complete = _from_store(_selectors)
complete_key: Complete = _from_store(_keys)
complete_checkpoint: Complete = _from_store(_checkpoints)
complete_setting: Complete = _settings
complete_demo: Complete = _demos
