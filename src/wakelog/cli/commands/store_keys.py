"""`wakelog store keys`: manages the keys of an encrypted store."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import yes_option
from wakelog.cli.render.table import say_table
from wakelog.cli.text import clock, inert_line
from wakelog.model.short_text import pluralize
from wakelog.store.encryption import new_key_file


@click.group("keys")
def keys_command() -> None:
    """Manage the keys of an encrypted store. The keys themselves are never shown.

    Examples:
      wakelog store keys new ~/wakelog.key
      wakelog store keys list
      wakelog store keys rotate file:~/new.key
      wakelog store keys delete fix-bug
    """


@keys_command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@common
def new(ctx: CommandContext, file: Path) -> None:
    """Make a key in a file that only you can read. Reading the store needs this key and the key ring; without them
    it cannot be read. Keep a copy where you keep other keys.

    Example:
      wakelog store keys new ~/wakelog.key
    """
    path = file.expanduser()
    id = new_key_file(path)
    ctx.answer("store-key", {"id": id, "file": str(path)}, f"Wrote the key {id} to {path}")
    ctx.suggest("keep a copy of it elsewhere", f"wakelog store create STORE --encrypt file:{path}")


@keys_command.command("list")
@common
def list_keys(ctx: CommandContext) -> None:
    """List the keys of the key ring: one for each session with its forks.

    Example:
      wakelog store keys list
    """
    encryption = ctx.store.encryption
    infos, ring = encryption.tree_keys(), encryption.ring_path

    def human() -> None:
        rows = []
        for key in infos:
            sessions = ", ".join(key.sessions) or "not in this store"
            deleted = f"deleted {clock(key.deleted_at, utc=ctx.utc, long=True)}" if key.deleted_at else ""
            rows.append((key.key_id, key.tree, deleted or sessions))
        say_table(ctx, "key | tree | sessions 12", rows)
        ctx.say(f"key ring {inert_line(str(ring))}" if rows else f"no keys yet in {inert_line(str(ring))}")

    data = {"ring": str(ring), "keys": msgspec.to_builtins(infos)}
    ctx.answer("store-keys", data, human, records=data["keys"])


@keys_command.command("rotate")
@click.argument("key", metavar="KEY")
@common
def rotate(ctx: CommandContext, key: str) -> None:
    """Replace the store's key by another one: file:PATH, env:NAME, keyring:SERVICE/NAME or command:CMD.

    The key ring is encrypted again. No byte of the store changes, and the old key no longer opens it. Programs that
    have the store open look for the new key where they found the old one, so put it there. Old copies of the key ring
    still open with the old key: delete them.

    Example:
      wakelog store keys rotate file:~/new.key
    """
    count = ctx.store.encryption.rotate(key)
    line = f"{count} {'key is' if count == 1 else 'keys are'} now opened by the new key, and no longer by the old one"
    ctx.answer("store-keys-rotated", {"keys": count}, line)
    ctx.suggest("name the new key from now on", f"export WAKELOG_ENCRYPTION_KEY={shlex.quote(key)}")


@keys_command.command("delete")
@click.argument("session", metavar="SESSION")
@click.option("--why", default="", help="Record the reason.")
@yes_option
@common
def delete_key(ctx: CommandContext, session: str, why: str, yes: bool) -> None:
    """Erase a session with all its forks everywhere: delete them here, and then their key.

    Copies and backups of them can never be read again, unless somebody kept a copy of the key ring. To name a session
    that is not in this store, use its id.

    Examples:
      wakelog store keys delete fix-bug
      wakelog store keys delete s_01JCX4M0E8Z6Y4T2R0N8K6H4F2 --yes
    """
    ctx.confirm(f"Erase {session} and all its forks for good, in every copy?", yes=yes)
    info = ctx.store.encryption.delete(session, why=why)
    line = f"Deleted {pluralize(len(info.sessions), 'session')} and the key {info.key_id}"
    ctx.answer("store-key-deleted", info, [line, "  copies of the key ring that still have it must go too"])
