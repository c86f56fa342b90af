"""`wakelog key`: who may use the server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.text import clock, inert, iso
from wakelog.config.amounts import parse_age
from wakelog.errors import InvalidInputError
from wakelog.http.keys import ANY, SCOPES, Key, Keys, check_namespace, make_key
from wakelog.http.namespaces import DEFAULT, Spaces
from wakelog.log.append import now_us
from wakelog.model.values import check_text

_FILE = click.option("--keys", "key_file", type=click.Path(path_type=Path), help="The file (default: in the store).")


@click.group("key")
def key_command() -> None:
    """Keys for `wakelog serve`. A key has a scope, which includes those before it: read, write (append and move), admin
    (delete, erase, take in bundles); and sees the namespaces it is made for, and nothing else.

    \b
    Examples:
      wakelog key new ci --scope write --namespace team-a
      wakelog key ls
      wakelog key revoke ci
    """


@key_command.command("new")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="write", help="What it may do (default: write).")
@click.option("--namespace", "namespaces", multiple=True, metavar="NAME", help="What it sees (default: default).")
@click.option("--all-namespaces", is_flag=True, help="It sees everything.")
@click.option("--expires", default="forever", metavar="AGE", help="When it ends: 90d, 1y (default: never).")
@_FILE
@common
def new(
    ctx: Context,
    name: str,
    scope: Any,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    expires: str,
    key_file: Path | None,
) -> None:
    """Makes a key and shows it, once: only its hash is kept.

    \b
    Example:
      wakelog key new ci --scope write --namespace team-a --expires 90d
    """
    if not check_text(name, "a key's name").strip() or not name.isprintable():
        raise InvalidInputError(f"{name!r} cannot name a key", kind="bad-name", hint="use a word such as ci")
    if all_namespaces and namespaces:
        raise click.UsageError("--namespace and --all-namespaces exclude each other")
    seen = (ANY,) if all_namespaces else tuple(map(check_namespace, namespaces)) or (DEFAULT,)
    age = parse_age(expires)
    now = now_us()
    key, token = make_key(name, scope, seen, now=now, expires=now + age if age else 0)
    with closing(_keys(ctx, key_file)) as keys:
        keys.add(key)
    data = {**_plain(key), "key": token}

    def human() -> None:
        ctx.say(token)
        ctx.warn(f"this is the only time it is shown; it may {scope} in {', '.join(_namespaces(key))}")

    ctx.answer("key", data, human)


@key_command.command("ls")
@_FILE
@common
def ls(ctx: Context, key_file: Path | None) -> None:
    """Lists the keys: by id, never by secret.

    \b
    Example:
      wakelog key ls --json
    """
    with closing(_keys(ctx, key_file)) as known:
        keys = sorted(known.all(), key=lambda key: key.created)
    ctx.answer("keys", [_plain(key) for key in keys], lambda: _show(ctx, keys))


@key_command.command("revoke")
@click.argument("name_or_id", metavar="NAME")
@_FILE
@common
def revoke(ctx: Context, name_or_id: str, key_file: Path | None) -> None:
    """Takes a key away, by name or id. A running server refuses it from the next request on.

    \b
    Example:
      wakelog key revoke ci
    """
    with closing(_keys(ctx, key_file)) as keys:
        key = keys.revoke(name_or_id)
    ctx.answer("key", _plain(key), lambda: ctx.say(f"{inert(key.name, lines=False)} ({key.id}) is no longer a key"))


def _keys(ctx: Context, key_file: Path | None) -> Keys:
    return Spaces(ctx.url).keys(key_file)


def _namespaces(key: Key) -> list[str]:
    return ["all namespaces"] if key.sees_all else list(key.namespaces)


def _plain(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "namespaces": None if key.sees_all else list(key.namespaces),
        "created": iso(key.created),
        "expires": iso(key.expires) if key.expires else None,
        "last_used": iso(key.last_used) if key.last_used else None,
    }


def _show(ctx: Context, keys: list[Key]) -> None:
    if not keys:
        ctx.say("There is no key.")
        return
    columns = [
        Column("key", 8),
        Column("name", 8),
        Column("scope"),
        Column("namespaces", 10),
        Column("made", drop=1),
        Column("expires", drop=2),
        Column("last used", drop=3),
    ]
    rows = [
        (
            key.id,
            key.name,
            key.scope,
            ", ".join(_namespaces(key)),
            clock(key.created, utc=ctx.utc, long=True),
            clock(key.expires, utc=ctx.utc, long=True) if key.expires else "never",
            clock(key.last_used, utc=ctx.utc, long=True) if key.last_used else "never",
        )
        for key in keys
    ]
    say_table(ctx, columns, rows)
