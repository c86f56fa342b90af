"""The configured hooks: a TOML file, written by hand or by `wakelog webhooks add`.

    [[hook]]
    name = "ops"
    url = "https://ops.example/wakelog"
    secret = "env:OPS_SECRET"            # where the secret is, never the secret
    on = ["flag", "approval", "failure", "budget"]
    severity = "warning"                 # the lowest severity of flags to send
    content = false                      # true to include texts

An address may contain a token, so messages and lists show only its host.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from urllib3.exceptions import LocationParseError
from urllib3.util import Url, parse_url

from wakelog.atomic_file import atomic_file
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.model.described import described
from wakelog.model.events import Severity

TOPICS: Final = ("flag", "approval", "failure", "budget")
HOOKS_MAX = 32
_LOCAL = ("127.0.0.1", "localhost", "::1", "[::1]")
_SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One receiver, and what is sent to it."""

    name: str
    url: str
    secret: str
    on: tuple[str, ...] = TOPICS
    severity: str = "warning"
    content: bool = False

    @property
    def host(self) -> str:
        """The part of the address that may be shown."""
        parts = _parse_address(self.url)
        return f"{parts.scheme}://{parts.host}" + (f":{parts.port}" if parts.port else "")

    @property
    def severities(self) -> tuple[str, ...]:
        return _SEVERITIES[_SEVERITIES.index(self.severity) :]


def read_hooks(file: Path) -> tuple[Webhook, ...]:
    """The hooks in a file; none if there is no file. InvalidInputError names what is wrong in it."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise InvalidInputError(f"{file} cannot be read: {exc}", kind="bad-webhook") from exc
    unknown = document.keys() - {"hook"}
    if unknown:
        raise _bad(file, f"{sorted(unknown)[0]!r} is unknown; each hook is a table [[hook]]")
    try:
        hooks = msgspec.convert(document.get("hook", []), described(tuple[Webhook, ...]))
    except msgspec.ValidationError as exc:
        raise _bad(file, str(exc)) from exc
    for hook in hooks:
        _check(file, hook)
    names = [hook.name for hook in hooks]
    if len(set(names)) != len(names) or len(hooks) > HOOKS_MAX:
        raise _bad(file, f"each hook needs a different name, and there can be {HOOKS_MAX} hooks at most")
    return hooks


def add_hook(file: Path, hook: Webhook) -> None:
    """Adds a hook, or replaces the one with its name."""
    _check(file, hook)
    _write(file, [*(h for h in read_hooks(file) if h.name != hook.name), hook])


def remove_hook(file: Path, name: str) -> Webhook:
    hooks = read_hooks(file)
    webhook = find_hook(hooks, name)
    _write(file, [h for h in hooks if h.name != name])
    return webhook


def find_hook(hooks: tuple[Webhook, ...], name: str) -> Webhook:
    for hook in hooks:
        if hook.name == name:
            return hook
    known = ", ".join(h.name for h in hooks) or "none"
    raise NotFoundError(f"there is no webhook {name!r}; known: {known}", kind="webhook-not-found")


def _write(file: Path, hooks: list[Webhook]) -> None:
    import tomlkit

    tables = tomlkit.aot()
    for hook in hooks:
        table = tomlkit.table()
        table.update(_plain(hook))
        tables.append(table)
    document = tomlkit.document()
    document["hook"] = tables
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as out:
            out.write(tomlkit.dumps(document).encode())
    except OSError as exc:
        raise NotAllowedError(f"{file} cannot be written: {exc.strerror}", kind="not-writable") from exc


def _plain(hook: Webhook) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in msgspec.structs.asdict(hook).items()}


def _check(file: Path, hook: Webhook) -> None:
    what = f"webhook {hook.name!r}"
    if not hook.name or not hook.name.isprintable() or len(hook.name) > 64:
        raise _bad(file, "a webhook needs a name of up to 64 characters")
    parts = _parse_address(hook.url)
    if parts.scheme not in ("http", "https") or not parts.host:
        raise _bad(file, f"{what} needs an address such as https://ops.example/wakelog")
    if parts.scheme == "http" and parts.host not in _LOCAL:
        raise _bad(file, f"{what} must use https: over http, anybody on the way could read it")
    if hook.severity not in _SEVERITIES:
        raise _bad(file, f"{what}: {hook.severity!r} is not a severity; use one of {', '.join(_SEVERITIES)}")
    wrong = [topic for topic in hook.on if topic not in TOPICS]
    if wrong or not hook.on:
        raise _bad(file, f"{what}: {(wrong or ['nothing'])[0]!r} is not a topic; use some of {', '.join(TOPICS)}")
    if not hook.secret:
        raise _bad(file, f"{what} needs a secret: a file, env:NAME, keyring:SERVICE/NAME or command:CMD")


def _parse_address(url: str) -> Url:
    try:
        return parse_url(url)
    except LocationParseError:
        return Url()


def _bad(file: Path, what: str) -> InvalidInputError:
    return InvalidInputError(f"{file}: {what}", kind="bad-webhook", hint="see wakelog webhooks add --help")
