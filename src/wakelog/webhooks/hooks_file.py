"""Which hooks there are: a TOML file, by hand or by `wakelog webhooks add`.

    [[hook]]
    name = "ops"
    url = "https://ops.example/wakelog"
    secret = "env:OPS_SECRET"            # where the secret is, never the secret
    on = ["flag", "approval", "failure", "budget"]
    severity = "warning"                 # of flags, the least that is told
    content = false                      # what was said, too

An address may hold a token itself, so messages and lists show its host alone.
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
    """One receiver, and what it wants to hear of."""

    name: str
    url: str
    secret: str
    on: tuple[str, ...] = TOPICS
    severity: str = "warning"
    content: bool = False

    @property
    def host(self) -> str:
        """The address as it may be shown."""
        parts = _parsed(self.url)
        return f"{parts.scheme}://{parts.host}" + (f":{parts.port}" if parts.port else "")

    @property
    def severities(self) -> tuple[str, ...]:
        return _SEVERITIES[_SEVERITIES.index(self.severity) :]


def read_hooks(file: Path) -> tuple[Webhook, ...]:
    """The hooks of a file; none where there is no file. InvalidInputError names what is wrong in it."""
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise InvalidInputError(f"{file} cannot be read: {exc}", kind="bad-webhook") from exc
    unknown = given.keys() - {"hook"}
    if unknown:
        raise _bad(file, f"{sorted(unknown)[0]!r} is not known; each hook is a table [[hook]]")
    try:
        hooks = msgspec.convert(given.get("hook", []), described(tuple[Webhook, ...]))
    except msgspec.ValidationError as exc:
        raise _bad(file, str(exc)) from exc
    for hook in hooks:
        _check(file, hook)
    names = [hook.name for hook in hooks]
    if len(set(names)) != len(names) or len(hooks) > HOOKS_MAX:
        raise _bad(file, f"each hook has a name of its own, and there are {HOOKS_MAX} at most")
    return hooks


def add_hook(file: Path, hook: Webhook) -> None:
    """Adds a hook, or changes the one of that name."""
    _check(file, hook)
    _write(file, [*(h for h in read_hooks(file) if h.name != hook.name), hook])


def remove_hook(file: Path, name: str) -> Webhook:
    hooks = read_hooks(file)
    found = find_hook(hooks, name)
    _write(file, [h for h in hooks if h.name != name])
    return found


def find_hook(hooks: tuple[Webhook, ...], name: str) -> Webhook:
    for hook in hooks:
        if hook.name == name:
            return hook
    known = ", ".join(h.name for h in hooks) or "none"
    raise NotFoundError(f"there is no webhook {name!r}; there is {known}", kind="webhook-not-found")


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
    parts = _parsed(hook.url)
    if parts.scheme not in ("http", "https") or not parts.host:
        raise _bad(file, f"{what} needs an address such as https://ops.example/wakelog")
    if parts.scheme == "http" and parts.host not in _LOCAL:
        raise _bad(file, f"{what} must use https: on the way, anybody could read it")
    if hook.severity not in _SEVERITIES:
        raise _bad(file, f"{what}: {hook.severity!r} is no severity; there are {', '.join(_SEVERITIES)}")
    wrong = [topic for topic in hook.on if topic not in TOPICS]
    if wrong or not hook.on:
        raise _bad(file, f"{what}: {(wrong or ['nothing'])[0]!r} cannot be told; there are {', '.join(TOPICS)}")
    if not hook.secret:
        raise _bad(file, f"{what} needs a secret: a file, env:NAME, keyring:SERVICE/NAME or command:CMD")


def _parsed(url: str) -> Url:
    try:
        return parse_url(url)
    except LocationParseError:
        return Url()


def _bad(file: Path, what: str) -> InvalidInputError:
    return InvalidInputError(f"{file}: {what}", kind="bad-webhook", hint="see wakelog webhooks add --help")
