"""`wakelog project`: keeps the index up to date while sessions are written."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.text import counted, inert_line
from wakelog.maintenance.projection import Projection, ShardProgress, catch_up, progress_of


@click.command("project")
@click.option("--once", is_flag=True, help="Index what is stored now, and stop.")
@click.option("--status", is_flag=True, help="Show the progress of each shard, and which process indexes it.")
@common
def project_command(ctx: CommandContext, once: bool, status: bool) -> None:
    """Keep the index up to date while sessions are written, until stopped.

    A query also brings the index up to date; with this command it need not wait. For a store on a NATS cluster with
    `index=postgresql://…` in its URL, start as many as you need, on any machine: they share the shards, and when one is
    lost the others take over. If it is killed, it continues where it was, and indexes nothing twice.

    Examples:
      wakelog project --store 'nats://n1,n2,n3/team?index=postgresql://wakelog@db/index'
      wakelog project --once
      wakelog project --status
    """
    if once and status:
        raise click.UsageError("--once and --status exclude each other")
    if status:
        found = progress_of(ctx.store)
        ctx.answer("projection-status", {"shards": msgspec.to_builtins(found)}, lambda: _show(ctx, found))
    elif once:
        seconds = catch_up(ctx.store)
        ctx.answer("projection", {"seconds": seconds}, f"The index is up to date ({seconds:.1f} s)")
    else:
        _run(ctx)


def _run(ctx: CommandContext) -> None:
    with Projection(ctx.store) as projection:
        signal.signal(signal.SIGTERM, lambda *_: projection.stop())
        if ctx.is_for_people:
            ctx.say("Projecting; stop with Ctrl-C")
            ctx.flush()
        before: tuple[int, ...] | None = None

        def report(now: Projection) -> None:
            nonlocal before
            if now.shards == before:
                return
            before = now.shards
            data = {"shards": list(now.shards), "of": now.of, "projectors": now.projectors}
            which = ", ".join(map(str, now.shards)) or "none"
            line = f"shards of this one: {which} (of {now.of}, with {counted(now.projectors, 'projector')})"
            if now.of or not ctx.is_for_people:
                ctx.tell("projection-share", data, line)

        projection.run(report, lambda what: ctx.warn(f"{inert_line(what)}; trying again"))


def _show(ctx: CommandContext, found: Sequence[ShardProgress]) -> None:
    rows = [
        (f"shard {shard.shard}", f"{shard.place:,}", f"{shard.behind:,}", inert_line(shard.owner) or "nobody")
        for shard in found
    ]
    columns = [Column("shard", 7), Column("place", right=True), Column("behind", right=True), Column("projected by")]
    say_table(ctx, columns, rows)
