"""Writes a setting into a TOML file, and keeps comments and everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wakelog.atomic_file import atomic_file
from wakelog.config.settings import PYPROJECT, SETTINGS, check, tables_of, user_file
from wakelog.errors import InvalidInputError, NotAllowedError


def write_setting(file: Path, key: str, value: str) -> str | int | bool:
    """Sets one key in a file, which is created if needed. Returns the value as stored."""
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
