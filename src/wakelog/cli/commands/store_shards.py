"""`wakelog store create` and `wakelog store shards`: create a store, and spread it over machines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import click
import msgspec

from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.options import yes_option
from wakelog.cli.render.table import lay_out
from wakelog.cli.text import inert_line, size
from wakelog.maintenance.shards import add_shards, create_store, placement, require_shards
from wakelog.model.shards import ShardPlacement

PLENTY = 64
"""More shards than this are confirmed. They serve more events a day than most stores see, and there is no way back."""


@click.command("create")
@click.argument("url", metavar="[STORE]", required=False)
@click.option(
    "--shards",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="On NATS: use N streams for the sessions; with --distributed: split each table into N parts (32).",
)
@click.option("--replicas", type=click.IntRange(1, 5), metavar="N", help="On NATS: keep each message on N servers (3).")
@click.option("--distributed", is_flag=True, help="On PostgreSQL with Citus: spread the tables over the workers.")
@click.option(
    "--encrypt",
    "key",
    default="",
    metavar="KEY",
    help="Encrypt its content with this key: file:PATH, env:NAME, keyring:SERVICE/NAME or command:CMD.",
)
@yes_option
@common
def create(
    ctx: CommandContext,
    url: str | None,
    shards: int | None,
    replicas: int | None,
    distributed: bool,
    key: str,
    yes: bool,
) -> None:
    """Create a store. Recording a session also creates one; use this to choose how, and for a first check.

    With --encrypt, content is encrypted before it is stored. The key is never in the store; `wakelog store keys new`
    makes one.

    A store on a NATS cluster is refused if it could lose acknowledged events: servers before 2.12, without
    sync_interval: always, or too few for the replicas.

    With --distributed, a session and its forks are kept by one worker of a Citus cluster. Name the coordinator in the
    URL. The store is opened like any other.

    Examples:
      wakelog store create nats://n1,n2,n3/wakelog --shards 4
      wakelog store create nats://localhost/trial --replicas 1
      wakelog store create postgresql://wakelog@coordinator/wakelog --distributed
      wakelog store create private --encrypt file:~/wakelog.key
    """
    where = url or ctx.url
    if not distributed:
        _confirm_many(ctx, shards, yes)
    placements = create_store(where, shards=shards, replicas=replicas, distributed=distributed, encryption_key=key)
    data = {
        "place": hide_password(where),
        "shards": msgspec.to_builtins(placements),
        "distributed": distributed,
        "encrypted": bool(key),
    }
    notes = []
    if distributed:
        notes.append("  its tables are spread over the workers; a session and its forks are on one of them")
    if key:
        notes.append("  its content is encrypted; names of sessions, kinds and times of events are not")
    if replicas is not None and replicas < 3 and "replicas=" not in where:
        notes.append(f"  with fewer than three replicas, the URL must say so to open it: ?replicas={replicas}")
    line = f"{ctx.mark(True)} created {inert_line(hide_password(where))}"
    ctx.answer("store-create", data, [line, *placement_lines(ctx, placements), *notes])
    if key:
        ctx.suggest("name the key wherever it is used", f"export WAKELOG_ENCRYPTION_KEY={shlex.quote(key)}")


@click.command("shards")
@click.argument("count", type=click.IntRange(1, 1024), metavar="[N]", required=False)
@yes_option
@common
def shards_command(ctx: CommandContext, count: int | None, yes: bool) -> None:
    """Show where each shard is kept: its leader, its replicas and how far they are behind. With N, use N shards for
    sessions that are opened from now on; existing sessions stay where they are. There is no way back to fewer.

    Examples:
      wakelog store shards
      wakelog store shards 8
    """
    require_shards(ctx.store)
    _confirm_many(ctx, count, yes)
    placements = placement(ctx.store) if count is None else add_shards(ctx.store, count)
    data = {"shards": msgspec.to_builtins(placements)}
    ctx.answer("store-shards", data, placement_lines(ctx, placements))


def _confirm_many(ctx: CommandContext, count: int | None, yes: bool) -> None:
    if count is None or count <= PLENTY or yes:
        return
    ctx.remark(
        f"{count} shards cost each server about {count // 5} MB of memory, {2 * count} open files and"
        f" {count / 60:.0f} % of a processor when nothing happens. Each opening of the store asks every shard, and so"
        " does each list and each look for news. As many shards as servers use them all; fewer are not possible later."
    )
    ctx.confirm(f"Use {count} shards?", yes=yes)


def placement_lines(ctx: CommandContext, placements: Sequence[ShardPlacement]) -> Iterable[str]:
    """A row for each shard."""
    rows = []
    for shard in placements:
        others = [
            f"{name} ({'away' if name in shard.away else 'follows'}, {shard.lag.get(name, 0)} behind)"
            for name in shard.replicas
            if name != shard.leader
        ]
        leader = shard.leader or ctx.style("none: being elected", fg="yellow")
        rows.append((f"shard {shard.shard}", leader, ", ".join(others), f"{shard.messages:,}", size(shard.bytes)))
    return lay_out(ctx, "shard 7 | leader | replicas | > messages | > bytes", rows) if rows else ()
