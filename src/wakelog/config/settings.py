"""Settings, and where each comes from.

The first that is set wins: an argument, a `WAKELOG_…` variable, `wakelog.toml` or `[tool.wakelog]` in `pyproject.toml`
(in this folder or the nearest one above), the user's `config.toml`, the default. An unknown key is an error that names
the most similar one, so that a typo is never ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.config.amounts import FOREVER, UNLIMITED, parse_age, parse_size
from wakelog.config.folders import user_folder
from wakelog.config.guards import NEVER_US, Guards
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.monitors.budgets import limits_of

if TYPE_CHECKING:
    from wakelog.monitors.prices import Prices

PROJECT_FILE, PYPROJECT = "wakelog.toml", "pyproject.toml"


class Setting(msgspec.Struct, frozen=True):
    """One setting: its environment variable, default, description, and a function that checks a value."""

    key: str
    variable: str
    default: str | int | bool
    doc: str
    check: Callable[[Any], Any]
    is_personal: bool = False
    """Whether only the user can set it, not a project's file: it protects the user."""


class SettingValue(msgspec.Struct, frozen=True):
    """A value in use: `origin` is argument, environment, project, user or default; `where` is the variable or file."""

    key: str
    value: str | int | bool
    origin: str
    where: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{value!r} is not a text", kind="bad-setting")
    return value


def _age(value: Any) -> str:
    parse_age(_text(value))
    return str(value)


def _size(value: Any) -> str:
    parse_size(str(value))
    return str(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdigit():
        raise InvalidInputError(f"{value!r} is not a number of sessions", kind="bad-setting", hint="use 0, 1, 2 …")
    return int(value)


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false", "1", "0"):
        raise InvalidInputError(f"{value!r} is neither true nor false", kind="bad-setting", hint="use true or false")
    return str(value).lower() in ("true", "1")


def _one_of(*words: str) -> Callable[[Any], str]:
    def check_word(value: Any) -> str:
        if value not in words:
            known = f"{', '.join(words[:-1])} or {words[-1]}"
            raise InvalidInputError(f"{value!r} is not {known}", kind="bad-setting")
        return str(value)

    return check_word


_action, _on_effect = _one_of("archive", "prune", "delete"), _one_of("flag", "ask")


def _limit(unit: str) -> Callable[[Any], str]:
    def check_limit(value: Any) -> str:
        limits_of({unit: value})
        return str(value)

    return check_limit


SETTINGS: dict[str, Setting] = {
    s.key: s
    for s in (
        Setting("store.path", "WAKELOG_STORE", "", "the store; a relative path counts from its file", _text),
        Setting("retention.keep", "WAKELOG_RETENTION_KEEP", FOREVER, "how long ended sessions are kept", _age),
        Setting("retention.max_size", "WAKELOG_RETENTION_MAX_SIZE", UNLIMITED, "how big sessions may get", _size),
        Setting("retention.keep_last", "WAKELOG_RETENTION_KEEP_LAST", 0, "newest sessions never touched", _count),
        Setting("retention.action", "WAKELOG_RETENTION_ACTION", "prune", "archive, prune or delete", _action),
        Setting("redact.enabled", "WAKELOG_REDACT_ENABLED", True, "take secrets out before storing", _switch, True),
        Setting("encryption.key", "WAKELOG_ENCRYPTION_KEY", "", "where the key of encrypted stores is", _text, True),
        Setting("encryption.rings", "WAKELOG_KEY_RINGS", "", "folder of the key rings", _text, True),
        Setting("budget.usd", "WAKELOG_BUDGET_USD", "", "what a new session may spend, in dollars", _limit("usd")),
        Setting("budget.tokens", "WAKELOG_BUDGET_TOKENS", "", "the same in tokens", _limit("tokens")),
        Setting("budget.seconds", "WAKELOG_BUDGET_SECONDS", "", "the same in seconds of calls", _limit("seconds")),
        Setting("import.idle", "WAKELOG_IMPORT_IDLE", "7d", "close imported sessions that are quiet so long", _age),
        Setting("git.labels", "WAKELOG_GIT_LABELS", True, "label new sessions with repo, branch and commit", _switch),
        Setting("trust.on_effect", "WAKELOG_TRUST_ON_EFFECT", "flag", "flag or ask (pause)", _on_effect, True),
    )
}


def load(cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> dict[str, SettingValue]:
    """Returns every setting with its value and origin."""
    environ = os.environ if environ is None else environ
    out = {s.key: SettingValue(s.key, s.default, "default", "") for s in SETTINGS.values()}
    for origin, file in (("user", user_file(environ)), ("project", project_file(cwd))):
        if file is None or not os.path.isfile(file):
            continue
        for key, value in read(file, is_project=origin == "project").items():
            out[key] = SettingValue(key, value, origin, str(file))
    for setting in SETTINGS.values():
        raw = environ.get(setting.variable)
        if raw:
            value = check(setting.key, raw, setting.variable)
            out[setting.key] = SettingValue(setting.key, value, "environment", setting.variable)
    return out


def read(file: Path, *, is_project: bool = False) -> dict[str, str | int | bool]:
    """Reads and checks the settings of one file. Keys are flat, and a relative store path becomes absolute."""
    out: dict[str, str | int | bool] = {}
    for key, value in _flat(tables_of(file), ""):
        out[key] = check(key, value, str(file))
        if is_project and SETTINGS[key].is_personal:
            raise InvalidInputError(
                f"{file}: {key} cannot be set by a project, only by you",
                kind="personal-setting",
                hint=f"remove it there; wakelog config set {key} {str(value).lower()} --user",
            )
        if key == "store.path":
            out[key] = resolve_path(str(value), file.parent)
    return out


def check(key: str, value: Any, where: str) -> str | int | bool:
    """Returns the checked value. InvalidInputError names the key, the place, and what is allowed."""
    setting = SETTINGS.get(key)
    if setting is None:
        import difflib

        near = difflib.get_close_matches(key, [*SETTINGS], 1, 0.5)
        raise InvalidInputError(
            f"{where}: there is no setting {key!r}",
            kind="unknown-setting",
            hint=f"did you mean {near[0]}?" if near else f"there are: {', '.join(SETTINGS)}",
        )
    try:
        checked: str | int | bool = setting.check(value)
        return checked
    except InvalidInputError as exc:
        raise InvalidInputError(f"{where}: {key}: {exc.message}", kind="bad-setting", hint=exc.hint) from exc


def policy(found: Mapping[str, SettingValue]) -> RetentionPolicy:
    """Returns the retention policy of the settings."""
    value = {key: setting.value for key, setting in found.items()}
    return RetentionPolicy(
        keep_us=parse_age(str(value["retention.keep"])),
        max_bytes=parse_size(str(value["retention.max_size"])),
        keep_last=int(value["retention.keep_last"]),
        action=str(value["retention.action"]),  # type: ignore[arg-type]  # checked when it was read
    )


def guards(found: Mapping[str, SettingValue]) -> Guards:
    """Returns what the settings say about sessions."""
    limits = {unit: str(found[f"budget.{unit}"].value) for unit in ("usd", "tokens", "seconds")}
    idle = parse_age(str(found["import.idle"].value))
    return Guards(
        {unit: limit for unit, limit in limits.items() if limit},
        str(found["trust.on_effect"].value),
        NEVER_US if idle is None else idle,
        bool(found["git.labels"].value),
    )


def store_path(cwd: Path | None = None) -> str:
    """Returns the store that a settings file names, or empty. `default_url` handles the variable and the folder."""
    setting = load(cwd, {k: v for k, v in os.environ.items() if k != "WAKELOG_STORE"})["store.path"]
    return str(setting.value)


def redacts() -> bool:
    """Whether secrets are removed before storing."""
    return bool(_personal("redact.enabled"))


def user_setting(key: str) -> str:
    """Returns a text setting that only the user can set."""
    return str(_personal(key))


def _personal(key: str) -> str | int | bool:
    """Reads a setting that a project cannot set, so its file is not read."""
    setting = SETTINGS[key]
    if raw := os.environ.get(setting.variable):
        return check(setting.key, raw, setting.variable)
    file = user_file()
    # Path.is_file raises where this user may not look: a service often has the home folder of somebody else.
    return read(file).get(setting.key, setting.default) if os.path.isfile(file) else setting.default


# Files


def user_prices() -> Prices:
    """Returns the prices of models: the built-in table, overridden by the user's `prices.toml`."""
    from wakelog.monitors.prices import FILE, load

    return load(user_file().parent / FILE)


def user_file(environ: Mapping[str, str] | None = None) -> Path:
    environ = os.environ if environ is None else environ
    if wakelog_config := environ.get("WAKELOG_CONFIG"):
        return Path(wakelog_config).expanduser()
    return Path(user_folder("config")) / "config.toml"


def project_file(cwd: Path | None = None) -> Path | None:
    """Finds `wakelog.toml`, or `pyproject.toml` with `[tool.wakelog]`, in this folder or the nearest one above."""
    here = (cwd or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if os.path.isfile(own := folder / PROJECT_FILE):
            return own
        if (
            os.path.isfile(shared := folder / PYPROJECT)
            and b"tool.wakelog" in shared.read_bytes()
            and tables_of(shared)
        ):
            return shared
    return None


def tables_of(file: Path) -> dict[str, Any]:
    """Reads our tables from a TOML file."""
    import tomllib

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"{file} is not TOML: {exc}", kind="bad-config", hint="correct the file") from exc
    except OSError as exc:
        raise InvalidInputError(f"{file} cannot be read: {exc.strerror}", kind="bad-config") from exc
    ours: dict[str, Any] = content.get("tool", {}).get("wakelog", {}) if file.name == PYPROJECT else content
    return ours


def resolve_path(path: str, base: Path) -> str:
    """Resolves a store's path relative to its settings file; a URL stays."""
    return path if ":" in path else str((base / Path(path).expanduser()).absolute())


def _flat(table: dict[str, Any], prefix: str) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for key, value in table.items():
        out += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return out


def write_setting(file: Path, key: str, value: str) -> str | int | bool:
    """Sets one key in a file, which is created if needed. Comments stay. Returns the value as stored."""
    import tomlkit

    checked = check(key, value, file.name)
    if SETTINGS[key].is_personal and file != user_file():
        raise InvalidInputError(
            f"{key} cannot be set for a project, only for yourself",
            kind="personal-setting",
            hint=f"wakelog config set {key} {value} --user",
        )
    if file.is_file():
        tables_of(file)  # raises a clear error if the file is not TOML
    document = tomlkit.parse(file.read_text(encoding="utf-8") if file.is_file() else "")
    *tables, name = (f"tool.wakelog.{key}" if file.name == PYPROJECT else key).split(".")
    table: Any = document
    for at, part in enumerate(tables):
        if part not in table:
            # A super table gives one header, [tool.wakelog.retention], instead of one for each part.
            table[part] = tomlkit.table(is_super_table=at < len(tables) - 1)
        table = table[part]
        if not isinstance(table, dict):
            raise InvalidInputError(f"{file}: {part} is not a table", kind="bad-config", hint=f"edit {file} by hand")
    table[name] = checked
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, mode=0o666) as out:
            out.write(tomlkit.dumps(document).encode())
    except OSError as exc:
        raise NotAllowedError(f"{file} cannot be written: {exc.strerror}", kind="not-writable") from exc
    return checked
