"""The state of ADK as a store keeps it: its scopes told apart, its values as JSON.

ADK replaces what has no JSON form by its text and goes on. So does this, with a warning that names the place.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from google.adk.sessions.state import State
from pydantic_core import PydanticSerializationError, to_jsonable_python

from wakelog.adapters.exact_values import to_stored
from wakelog.errors import InvalidInputError
from wakelog.model.values import Value, check_value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta


class ScopedState:
    """A change of the state by scope, with bare keys: of the session, its user and its app. What is temporary is left
    out."""

    def __init__(self, change: Mapping[str, Any] | None) -> None:
        self.session: dict[str, Any] = {}
        """Values as JSON, but not yet in the form that a log takes."""
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
                self.session[key] = _as_json(value, where)

    def first(self) -> dict[str, Value]:
        """The session's own part, for a session that has none yet."""
        return {key: stored_value(value, f"state[{key!r}]") for key, value in self.session.items()}

    def patch(self, held: dict[str, Value]) -> Delta:
        """What changes in the session's own part. `held` has the values of the same keys now.

        A program that keeps a growing list sets all of it every time. So only what is new in it is looked at, unless
        there are values that a log writes in another form: then both sides have to be in that form first."""
        patch = diff(held, {**held, **self.session}, "/data")
        if all(check_value(to_stored(op.get("value")), f"state {op['path'][5:]}") is op.get("value") for op in patch):
            return patch
        return diff(held, {**held, **self.first()}, "/data")

    @property
    def shared(self) -> dict[str, Value]:
        """What is not the session's own, with prefixes."""
        return {
            **{State.APP_PREFIX + key: value for key, value in self.app.items()},
            **{State.USER_PREFIX + key: value for key, value in self.user.items()},
        }


def stored_value(value: Any, where: str) -> Value:
    """A value as a log takes it. InvalidInputError, with the path, where there is no way to write it."""
    return check_value(to_stored(_as_json(value, where)), where)


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
