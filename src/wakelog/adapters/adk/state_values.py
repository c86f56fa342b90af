"""ADK's state in the form that a store keeps: split by scope, with values as JSON.

ADK replaces a value that has no JSON form by its text. So does this module, with a warning that names the place.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from google.adk.sessions.state import State
from pydantic_core import PydanticSerializationError, to_jsonable_python

from wakelog.adapters.exact_values import stored_form
from wakelog.errors import InvalidInputError
from wakelog.model.values import Value
from wakelog.state.diff import common_head, diff, diff_lists
from wakelog.state.patch import Delta, escape


class ScopedState:
    """A change of the state, split into session, user and app, with keys without prefix. Temporary keys are left
    out."""

    def __init__(self, change: Mapping[str, Any] | None) -> None:
        self.session: dict[str, Any] = {}
        """Values as they were given."""
        self.user: dict[str, Value] = {}
        self.app: dict[str, Value] = {}
        for key, value in (change or {}).items():
            if key.startswith(State.TEMP_PREFIX):
                continue
            where = f"state[{key!r}]"
            if key.startswith(State.APP_PREFIX):
                self.app[key.removeprefix(State.APP_PREFIX)] = stored_value(value, where)
            elif key.startswith(State.USER_PREFIX):
                self.user[key.removeprefix(State.USER_PREFIX)] = stored_value(value, where)
            else:
                self.session[key] = value

    def stored_session(self) -> dict[str, Value]:
        """The session's part in stored form."""
        return {key: stored_value(value, f"state[{key!r}]") for key, value in self.session.items()}

    def patch(self, held: dict[str, Value]) -> Delta:
        """The patch for the session's part. `held` has the current values of the same keys.

        A program with a growing list sets the whole list every time. So values are compared first, and only the
        difference is converted. If that changes a value, both sides are compared in stored form."""
        patch: Delta = []
        for key, value in self.session.items():
            patch += _change_of(key, value, held)
        if all(stored_form(op.get("value"), f"state {op['path'][5:]}") is op.get("value") for op in patch):
            return patch
        return diff(held, {**held, **self.stored_session()}, "/data")

    @property
    def shared(self) -> dict[str, Value]:
        """The parts of user and app, with prefixes."""
        return {
            **{State.APP_PREFIX + key: value for key, value in self.app.items()},
            **{State.USER_PREFIX + key: value for key, value in self.user.items()},
        }


def stored_value(value: Any, where: str) -> Value:
    """A value in stored form. InvalidInputError, with the path, if it has none."""
    return stored_form(_as_json(value, where), where)


def _change_of(key: str, value: Any, held: dict[str, Value]) -> Delta:
    """The patch for one key, with values as JSON. A list is compared with the held one first, and only the items that
    come after those which both have are converted."""
    before: Value = held.get(key)
    path = f"/data/{escape(key)}"
    head = common_head(before, value) if type(value) is list and type(before) is list else 0
    if head:
        with contextlib.suppress(PydanticSerializationError, UnicodeDecodeError):
            return diff_lists(before[head:], to_jsonable_python(value[head:]), path, head)
    given = _as_json(value, f"state[{key!r}]")
    return diff(before, given, path) if key in held else [{"op": "add", "path": path, "value": given}]


def _as_json(value: Any, where: str) -> Any:
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, UnicodeDecodeError):
        return _as_text(value, where)


def _as_text(value: Any, where: str) -> Any:
    for path, leaf in _leaves(value, where):
        try:
            to_jsonable_python(leaf)
        except UnicodeDecodeError as exc:
            raise InvalidInputError(
                f"{path} cannot be stored: bytes that are not UTF-8 text are not JSON",
                kind="not-a-value",
                hint="keep them as an artifact, or encode them as base64",
            ) from exc
        except PydanticSerializationError:
            warnings.warn(f"{path} is a {type(leaf).__name__}, which is not JSON: its text is stored", stacklevel=2)
    try:
        return to_jsonable_python(value, serialize_unknown=True)
    except PydanticSerializationError as exc:
        raise InvalidInputError(f"{where} cannot be stored: {exc}", kind="not-a-value") from exc


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple | set):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{where}[{number}]")
    else:
        yield where, value
