"""`wakelog project`: keeps the index up to date while sessions are written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from contextlib import closing, nullcontext

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.render.table import say_table
from wakelog.cli.text import inert_line
from wakelog.http.namespaces import NamespaceStores
from wakelog.maintenance.projection import NamespaceProjections, Projection, catch_up, progress_of
from wakelog.model.short_text import pluralize
from wakelog.store import Store


@click.command("project")
@click.option("--once", is_flag=True, help="Index what is stored now, and stop.")
@click.option("--status", is_flag=True, help="Show the progress of each shard, and which process indexes it.")
@click.option("--all-namespaces", is_flag=True, help="Index all namespaces, and new ones as they are created.")
@common
def project_command(ctx: CommandContext, once: bool, status: bool, all_namespaces: bool) -> None:
    """Keep the index up to date while sessions are written, until stopped.

    A query also brings the index up to date; with this command it need not wait. For a store on a NATS cluster with
    `index=postgresql://…` in its URL, start as many as you need, on any machine: they share the shards, and when one is
    lost the others take over. If it is killed, it continues where it was, and indexes nothing twice.

    Examples:
      wakelog project --store 'nats://n1,n2,n3/team?index=postgresql://db/index'
      wakelog project --all-namespaces
      wakelog project --once
      wakelog project --status
    """
    if once and status:
        raise click.UsageError("--once and --status exclude each other")
    store = ctx.store
    with closing(NamespaceStores(ctx.url)) if all_namespaces else nullcontext() as spaces:
        if not once and not status:
            _run(ctx, spaces)
            return
        stores = {"": store} if spaces is None else {name: spaces.get(name).store for name in spaces.names()}
        if status:
            _show_status(ctx, stores)
        else:
            seconds = sum(map(catch_up, stores.values()))
            where = f" of {pluralize(len(stores), 'namespace')}" if spaces is not None else ""
            ctx.answer("projection", {"seconds": seconds}, f"The index{where} is up to date ({seconds:.1f} s)")


def _run(ctx: CommandContext, spaces: NamespaceStores | None) -> None:
    shares: dict[str, tuple[int, ...]] = {}
    output = threading.Lock()

    def report(name: str, now: Projection) -> None:
        with output:
            if shares.get(name) == now.shards:
                return
            shares[name] = now.shards
            data = {"shards": list(now.shards), "of": now.of, "projectors": now.projectors, "namespace": name}
            which = ", ".join(map(str, now.shards)) or "none"
            line = f"shards of this one: {which} (of {now.of}, with {pluralize(now.projectors, 'projector')})"
            if now.of or not ctx.is_for_people:
                ctx.tell("projection-share", data, _prefixed(name, line))

    def warn(name: str, what: str) -> None:
        with output:
            ctx.warn(f"{_prefixed(name, inert_line(what))}; trying again")

    if spaces is None:
        projections = NamespaceProjections(lambda: [""], lambda _: ctx.store)
    else:
        projections = NamespaceProjections(spaces.names, lambda name: spaces.get(name).store)
    with projections:
        signal.signal(signal.SIGTERM, lambda *_: projections.stop())
        if ctx.is_for_people:
            ctx.say("Projecting; stop with Ctrl-C")
            ctx.flush()
        projections.run(report, warn)


def _show_status(ctx: CommandContext, stores: Mapping[str, Store]) -> None:
    results = [(name, shard) for name, store in stores.items() for shard in progress_of(store)]
    data = {"shards": [{**msgspec.to_builtins(shard), "namespace": name} for name, shard in results]}
    rows = [
        (
            _prefixed(name, f"shard {shard.shard}"),
            f"{shard.place:,}",
            f"{shard.behind:,}",
            inert_line(shard.owner) or "nobody",
        )
        for name, shard in results
    ]
    ctx.answer("projection-status", data, lambda: say_table(ctx, "shard 7 | > place | > behind | projected by", rows))


def _prefixed(namespace: str, text: str) -> str:
    return f"{namespace}: {text}" if namespace else text
