"""Typed objects become JSON and come back equal, also one inside another."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import pydantic
import pytest

from wakelog.model.typed_values import dump_typed, load_typed


class Aliased(pydantic.BaseModel):
    count: int = pydantic.Field(default=0, alias="Count")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    when: datetime = datetime(2026, 1, 1)
    pair: tuple[int, ...] = ()


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    count: int = 0

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.count


class Shelf(msgspec.Struct):
    label: str = ""


@dataclass
class Mixed:
    model: Aliased = field(default_factory=Aliased)
    shelf: Shelf = field(default_factory=Shelf)
    by_number: dict[int, str] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)


@pytest.mark.parametrize(
    "value",
    [
        Aliased(Count=5),
        Strict(when=datetime(2027, 5, 6), pair=(1, 2)),
        Closed(count=3),
        Mixed(Aliased(Count=2), Shelf("a"), {7: "seven"}, {"z", "b"}),
    ],
)
def test_a_typed_object_comes_back_equal(value: Any) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(dump_typed(value)))
    assert load_typed(type(value), stored) == value


def test_a_list_of_models_comes_back_as_models() -> None:
    assert load_typed(list[Aliased], dump_typed([Aliased(Count=1)])) == [Aliased(Count=1)]


def test_a_set_has_one_order_in_every_process() -> None:
    assert dump_typed({"tags": {"c", "a", "b"}}) == {"tags": ["a", "b", "c"]}


def test_what_does_not_fit_or_has_no_json_form_is_refused() -> None:
    with pytest.raises(ValueError, match="int"):
        load_typed(Aliased, {"count": "many"})
    with pytest.raises(TypeError, match="object has no JSON form"):
        dump_typed({"a": object()})
