"""`wakelog serve` and `key`: serve this store over HTTP, and manage the keys for it."""

from __future__ import annotations

import ipaddress
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wakelog.cli.background_intake import background_intake
from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import extra_needed
from wakelog.cli.render.results import plain, shape
from wakelog.cli.render.table import say_table
from wakelog.cli.text import clock, inert_line
from wakelog.config.amounts import parse_age, parse_size
from wakelog.errors import InvalidInputError
from wakelog.http.keys import ANY, SCOPES, Key, Keys, check_namespace, make_key
from wakelog.http.namespaces import DEFAULT, NamespaceStores
from wakelog.model.values import check_text

if TYPE_CHECKING:
    from wakelog.http.state import Server

_FILE = click.option(
    "--keys", "key_file", type=click.Path(path_type=Path), help="Use this key file (default: in the store)."
)


@click.command("serve")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Listen on this address (default: loopback).")
@click.option(
    "--port", default=8425, type=click.IntRange(0, 65535), help="Listen on this port (default: 8425; 0: any)."
)
@click.option("--host-name", "host_names", multiple=True, metavar="NAME", help="Accept this host name (repeat).")
@click.option(
    "--trusted-origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Accept requests from pages of this origin (repeat).",
)
@_FILE
@click.option(
    "--launch-key/--no-launch-key", default=None, help="Create a key for this run only (default: on loopback)."
)
@click.option("--rate", default=1000.0, metavar="N", help="Allow N requests a second for each key (0: no limit).")
@click.option("--connections", default=500, metavar="N", help="Allow N connections from each address (0: no limit).")
@click.option("--max-body", default="64MB", metavar="SIZE", help="Accept request bodies up to this size.")
@click.option("--max-bundle", default="256MB", metavar="SIZE", help="Accept bundles up to this size.")
@click.option("--time-limit", default=30.0, metavar="SECONDS", help="Wait at most this long for an answer.")
@click.option(
    "--tls-cert", type=click.Path(exists=True, path_type=Path), help="Use TLS with this certificate chain (PEM)."
)
@click.option(
    "--tls-key", type=click.Path(exists=True, path_type=Path), help="Use this private key of the certificate (PEM)."
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["auto", "text", "json"]),
    default="auto",
    help="Write log lines in this form.",
)
@common
def serve_command(
    ctx: CommandContext,
    host: str,
    port: int,
    host_names: tuple[str, ...],
    origins: tuple[str, ...],
    key_file: Path | None,
    launch_key: bool | None,
    rate: float,
    connections: int,
    max_body: str,
    max_bundle: str,
    time_limit: float,
    tls_cert: Path | None,
    tls_key: Path | None,
    log_form: str,
) -> None:
    """Serve this store over HTTP until stopped. On loopback it creates and shows a key that is valid until then. On any
    other address only keys from `wakelog key new` are accepted.

    Examples:
      wakelog serve
      wakelog serve --port 0 --json
      wakelog serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    with extra_needed("the server", "server"):
        from wakelog.http import server as serving
        from wakelog.http.guards import LOOPBACK
        from wakelog.http.state import Server, Settings
    is_local = _is_loopback(host)
    names = (*LOOPBACK, *host_names, *(() if is_local or host in ("0.0.0.0", "::") else (host,)))
    settings = Settings(
        url=ctx.url,
        host_names=names,
        trusted_origins=origins,
        key_file=str(key_file) if key_file else "",
        rate=rate,
        connections_max=connections,
        body_max=parse_size(max_body) or sys.maxsize,
        bundle_max=parse_size(max_bundle) or sys.maxsize,
        answer_s=time_limit,
    )
    server = Server(settings, launch=is_local if launch_key is None else launch_key)
    server.require_keys()
    sock = serving.listen(host, port)
    serving.log_to_stderr(as_json=log_form == "json" or (log_form == "auto" and not sys.stderr.isatty()))
    _announce(ctx, server, serving.url_of(host, sock, "https" if tls_cert else "http"))
    if not is_local and not tls_cert:
        ctx.warn("keys and content go over the network unencrypted: use --tls-cert, or a proxy that does it")
    with background_intake() if is_local else nullcontext():
        serving.run(server, sock, tls=(str(tls_cert), str(tls_key or "")) if tls_cert else None)


def _announce(ctx: CommandContext, server: Server, url: str) -> None:
    data = {"url": url, "key": server.launch_token or None, "store": ctx.url, "keys": len(server.keys.all())}

    def human() -> None:
        ctx.say(f"Serving {ctx.url} at {url}")
        if server.launch_token:
            ctx.say(f"  key for this run: {server.launch_token}")
        ctx.say(f"  {data['keys']} other keys (wakelog key ls); stop with Ctrl-C")

    ctx.answer("serve", data, human)
    ctx.flush()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@click.group("key")
def key_command() -> None:
    """Manage the keys for `wakelog serve`. A key has a scope, which includes the scopes before it: read, write (append
    and move), admin (delete, erase, import bundles). It gives access to the namespaces that it is made for, and to
    nothing else.

    Examples:
      wakelog key new ci --scope write --namespace team-a
      wakelog key ls
      wakelog key revoke ci
    """


@key_command.command("new")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="write", help="Set what it may do (default: write).")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Give access to this namespace (repeat; default: default).",
)
@click.option("--all-namespaces", is_flag=True, help="Give access to all namespaces.")
@click.option("--expires", default="forever", metavar="AGE", help="Let it expire after: 90d, 1y (default: never).")
@_FILE
@common
def new(
    ctx: CommandContext,
    name: str,
    scope: Any,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    expires: str,
    key_file: Path | None,
) -> None:
    """Create a key and show it once. Only its hash is stored.

    Example:
      wakelog key new ci --scope write --namespace team-a --expires 90d
    """
    if not check_text(name, "a key's name").strip() or not name.isprintable():
        raise InvalidInputError(f"{name!r} cannot name a key", kind="bad-name", hint="use a word such as ci")
    if all_namespaces and namespaces:
        raise click.UsageError("--namespace and --all-namespaces exclude each other")
    seen = (ANY,) if all_namespaces else tuple(map(check_namespace, namespaces)) or (DEFAULT,)
    age = parse_age(expires)
    now = time.time_ns() // 1000
    key, token = make_key(name, scope, seen, now=now, expires=now + age if age else 0)
    with closing(_keys(ctx, key_file)) as keys:
        keys.add(key)
    data = {**plain(key), "key": token}

    def human() -> None:
        ctx.say(token)
        ctx.warn(f"this is the only time the key is shown; it may {scope} in {', '.join(_namespaces(key))}")

    ctx.answer("key", data, human)


@key_command.command("ls")
@_FILE
@common
def ls(ctx: CommandContext, key_file: Path | None) -> None:
    """List the keys by id; secrets are never shown.

    Example:
      wakelog key ls --json
    """
    with closing(_keys(ctx, key_file)) as known:
        keys = sorted(known.all(), key=lambda key: key.created)
    ctx.answer("keys", keys, lambda: _show(ctx, keys))


@key_command.command("revoke")
@click.argument("name_or_id", metavar="NAME")
@_FILE
@common
def revoke(ctx: CommandContext, name_or_id: str, key_file: Path | None) -> None:
    """Revoke a key, by name or id. A running server refuses it from the next request on.

    Example:
      wakelog key revoke ci
    """
    with closing(_keys(ctx, key_file)) as keys:
        key = keys.revoke(name_or_id)
    ctx.answer("key", key, f"{inert_line(key.name)} ({key.id}) is revoked")


def _keys(ctx: CommandContext, key_file: Path | None) -> Keys:
    return NamespaceStores(ctx.url).keys(key_file)


def _namespaces(key: Key) -> list[str]:
    return ["all namespaces"] if key.sees_all else list(key.namespaces)


shape(
    Key,
    "id name scope namespaces created:iso expires:iso? last_used:iso?",
    namespaces=lambda key: None if key.sees_all else list(key.namespaces),
)


def _show(ctx: CommandContext, keys: list[Key]) -> None:
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
    say_table(
        ctx,
        "key 8 | name 8 | scope | namespaces 10 | made -1 | expires -2 | last used -3",
        rows,
        none="There is no key.",
    )
