"""The typed part of the state that belongs to the user: `data`.

`data` can be described by a msgspec struct, a dataclass or TypedDict (through msgspec), a Pydantic model, or a JSON
Schema. The log always stores plain JSON. The type is checked when a draft is committed and when a session is opened. A
type may have a version: then migrations, functions from dict to dict, upgrade older data, and the upgrade is recorded
as an event.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.model.typed_values import dump_typed, load_typed
from wakelog.model.values import Value, check_value
from wakelog.state.diff import diff
from wakelog.state.patch import copy

if TYPE_CHECKING:
    from wakelog.session.base import Base

S = TypeVar("S")
Migrations = Mapping[int, Callable[[dict[str, Value]], dict[str, Value]]]

LABEL = "wakelog.data"
"""The label with the type and version of the stored data: `Triage@2`."""


class DataType(Generic[S]):
    """Converts `data` from JSON to the caller's type, and back."""

    def __init__(self, kind: Any = None, *, version: int = 1, migrate: Migrations | None = None) -> None:
        self.kind = kind
        self.version = version
        self.migrations = dict(migrate or {})
        self.name = "" if kind is None else "schema" if isinstance(kind, dict) else str(kind.__name__)

    @property
    def label(self) -> str:
        return f"{self.name}@{self.version}" if self.name else ""

    def load(self, value: dict[str, Value]) -> S:
        """Returns the typed data, as a copy that may be changed. Raises InvalidInputError if it does not fit the
        type."""
        fresh = copy(value)
        try:
            if self.kind is None:
                return fresh  # type: ignore[no-any-return]
            if isinstance(self.kind, dict):
                _validate_schema(fresh, self.kind)
                return fresh  # type: ignore[no-any-return]
            return load_typed(self.kind, fresh)  # type: ignore[no-any-return]
        except ValueError as exc:
            raise InvalidInputError(
                f"the data does not fit {self.name}: {exc}",
                kind="schema-mismatch",
                hint="fix the data, or pass migrate={version: function} when opening the session",
            ) from exc

    def dump(self, data: S) -> dict[str, Value]:
        """Returns the JSON form of typed data, checked against the type."""
        value = copy(data) if isinstance(data, dict) else _dump(data)
        checked: dict[str, Value] = check_value(value, "data")
        self.load(checked)
        return checked

    def migrate(self, value: dict[str, Value], written_as: str) -> dict[str, Value]:
        """Upgrades `value` from the version it was written with."""
        name, _, number = written_as.partition("@")
        old = int(number) if number.isdigit() else 1
        if name and self.name and name != self.name and not self.migrations:
            with contextlib.suppress(InvalidInputError):
                self.load(value)
                return value
            raise InvalidInputError(
                f"the data was written as {written_as}, and {self.label} does not fit it",
                kind="schema-mismatch",
                hint="pass migrate={version: function} when opening the session",
            )
        if old > self.version:
            raise InvalidInputError(
                f"the data was written as {written_as}, newer than {self.label}",
                kind="schema-newer",
                hint="upgrade the code",
            )
        for version in range(old, self.version):
            step = self.migrations.get(version)
            if step is not None:
                value = step(copy(value))
        return value


def split_type(data: Any) -> tuple[Any, dict[str, Value]]:
    """Returns the type and the first value of what a caller passes as `data`: a value, an instance, a type or a JSON
    Schema."""
    if data is None:
        return None, {}
    if isinstance(data, type):
        return data, _first_value(_make(data))
    if isinstance(data, dict):
        if "$schema" in data:
            return data, {}
        return None, check_value(data, "data")
    return type(data), _first_value(data)


def _make(kind: type[Any]) -> Any:
    try:
        return kind()
    except (TypeError, ValueError) as exc:
        raise InvalidInputError(
            f"{kind.__name__} has fields without a default: {exc}",
            kind="bad-data",
            hint=f"pass the first value, data={kind.__name__}(…), or give every field a default",
        ) from exc


def _first_value(data: Any) -> dict[str, Value]:
    value = _dump(data)
    if not isinstance(value, dict):
        raise InvalidInputError(
            "data must be an object at the top", kind="bad-data", hint="wrap it in a dict or a struct"
        )
    checked: dict[str, Value] = check_value(value, "data")
    return checked


def _dump(data: Any) -> Any:
    try:
        return dump_typed(data)
    except TypeError as exc:
        raise InvalidInputError(
            f"the data cannot be stored: {exc}",
            kind="bad-data",
            hint="use a dict, a dataclass, a msgspec struct or a Pydantic model",
        ) from exc


def _validate_schema(value: Value, schema: dict[str, Any]) -> None:
    try:
        import jsonschema
    except ImportError as exc:
        raise UnsupportedError(
            "checking data against a JSON Schema needs the jsonschema package",
            kind="extra-missing",
            hint="pip install 'wakelog[jsonschema]'",
        ) from exc
    try:
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError as exc:
        raise ValueError(exc.message) from exc


def upgrade_data(session: Base[Any]) -> None:
    """Checks an existing session's data against the type it is opened with, and migrates older data."""
    data_type = session._data_type
    if data_type.kind is None:
        return
    state = session.log.state()
    written_as = state["labels"].get(LABEL, "")
    if written_as == data_type.label:
        data_type.load(state["data"])
        return
    value = data_type.migrate(state["data"], written_as)
    data_type.load(value)
    patch = diff(state["data"], value, "/data")
    why = f"data brought from {written_as or 'untyped'} to {data_type.label}"
    changes: list[ev.Event] = [ev.LabelsSet(labels={LABEL: data_type.label}, why=why)]
    if patch:
        changes.insert(0, ev.StatePatched(patch=patch, why=why))
    session.append(*(EventDraft(change, actor="runtime") for change in changes), expect=session.head.seq)
