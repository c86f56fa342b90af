"""Writing a setting into a TOML file, leaving the rest of the file as it is.

The file is edited as text, so that comments stay; then it is read again, and unless exactly that one setting changed,
nothing is written.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from wakelog.atomic_file import atomic_file
from wakelog.config.settings import PYPROJECT, SETTINGS, check, tables_of, user_file
from wakelog.errors import InvalidInputError, NotAllowedError


def write_setting(file: Path, key: str, value: str) -> str | int | bool:
    """Sets one key in a file, made if it is not there; returns the value as stored."""
    checked = check(key, value, file.name)
    if SETTINGS[key].is_personal and file != user_file():
        raise InvalidInputError(
            f"{key} cannot be set for a project, only for yourself",
            kind="personal-setting",
            hint=f"wakelog config set {key} {value} --user",
        )
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    wanted = _with(tables_of(file) if before else {}, key, checked)
    after = _edited(before, file.name == PYPROJECT, key, checked)
    if _ours(after, file.name) != wanted:
        raise InvalidInputError(
            f"{key} cannot be set in {file} without rewriting it", kind="bad-config", hint=f"edit {file} by hand"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file, mode=0o666) as out:
            out.write(after.encode())
    except OSError as exc:
        raise NotAllowedError(f"{file} cannot be written: {exc.strerror}", kind="not-writable") from exc
    return checked


def _edited(text: str, is_pyproject: bool, key: str, value: str | int | bool) -> str:
    section, _, name = key.rpartition(".")
    header = f"[tool.wakelog.{section}]" if is_pyproject else f"[{section}]"
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    try:
        start = next(i for i, each in enumerate(lines) if each.strip() == header)
    except StopIteration:
        return "\n".join([*lines, *([""] if lines else []), header, line, ""])
    end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    for i in range(start + 1, end):
        if re.match(rf"\s*{re.escape(name)}\s*=", lines[i]):
            lines[i] = line
            break
    else:
        lines.insert(start + 1, line)
    return "\n".join(lines) + "\n"


def _with(tables: dict[str, Any], key: str, value: str | int | bool) -> dict[str, Any]:
    section, _, name = key.rpartition(".")
    inner = tables.get(section, {})
    return {**tables, section: {**(inner if isinstance(inner, dict) else {}), name: value}}


def _ours(text: str, name: str) -> dict[str, Any] | None:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    ours: dict[str, Any] = content.get("tool", {}).get("wakelog", {}) if name == PYPROJECT else content
    return ours
