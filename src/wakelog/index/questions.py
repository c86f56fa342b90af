"""The typed questions as values, so that they can be asked over a wire.

For each question of `Queries` there is a struct with its parameters, made from its signature, and the type of its
answer. A question that is added there can be asked from afar without a word here.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from wakelog.index.queries import Queries

_Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class Asked(msgspec.Struct, frozen=True):
    """One question: its name, the struct that holds its parameters, what it answers with."""

    name: str
    struct: type[msgspec.Struct]
    answer: Any
    doc: str

    @property
    def path(self) -> str:
        """Where a server answers it."""
        return f"/index/{self.name.replace('_', '-')}"

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> msgspec.Struct:
        """The parameters of a call as a struct."""
        names = self.struct.__struct_fields__
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        plain = {k: tuple(v) if isinstance(v, Iterable) and not isinstance(v, str) else v for k, v in values.items()}
        return self.struct(**plain)


def _asked(name: str) -> Asked:
    method = getattr(Queries, name)
    hints = typing.get_type_hints(method)
    fields: list[Any] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        kind = _over_a_wire(hints[parameter.name])
        required = parameter.default is inspect.Parameter.empty
        fields.append((parameter.name, kind) if required else (parameter.name, kind, parameter.default))
    struct = msgspec.defstruct(
        f"Ask_{name}", fields, frozen=True, forbid_unknown_fields=True, omit_defaults=True, module=__name__
    )
    return Asked(name, struct, hints["return"], inspect.cleandoc(method.__doc__ or ""))


def _over_a_wire(kind: Any) -> Any:
    """The type with lists where any iterable would do, and numbers that a database can be asked about."""
    if kind is int:
        return _Number
    if kind == Iterable[str]:
        return tuple[str, ...]
    parts = tuple(map(_over_a_wire, typing.get_args(kind)))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.Union[parts]  # noqa: UP007 - made when it runs
    return types.GenericAlias(tuple, parts) if typing.get_origin(kind) is tuple else kind


QUESTIONS: dict[str, Asked] = {
    name: _asked(name) for name in vars(Queries) if not name.startswith("_") and name != "ask"
}
