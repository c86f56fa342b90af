"""`wakelog anchor`: the head, to be kept elsewhere."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.output import writing
from wakelog.cli.shell_completion import complete_session


@click.command("anchor")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="A file to write it to.")
@click.option("--force", is_flag=True, help="Replace the file.")
@common
def anchor_command(ctx: Context, session: str, out: Path | None, force: bool) -> None:
    """Prints the head of a session as JSON. Kept where the store's writers cannot reach it, it proves later that
    nothing was rewritten or cut off: `wakelog verify --against FILE`.

    \b
    Examples:
      wakelog anchor fix-bug --out anchor.json
      wakelog verify fix-bug --against anchor.json
    """
    found = ctx.session(session)
    anchor = found.anchor()
    text = msgspec.json.encode(anchor)
    if out is not None:
        with writing(out, force=force) as file:
            file.write(text + b"\n")
    data = {**msgspec.to_builtins(anchor), "name": found.name, "file": str(out) if out else None}
    said = f"Anchored e{anchor.seq} of {found.name or found.id} in {out}" if out else text.decode()
    ctx.answer("anchor", data, lambda: ctx.say(said))
    if out is not None:
        ctx.suggest(f"keep {out} elsewhere", f"wakelog verify --against {out}")
