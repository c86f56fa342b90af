"""Ids of frameworks as names of sessions, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.adapters.compound_names import compound_name, ids_of, is_hashed
from wakelog.errors import InvalidInputError
from wakelog.model.names import check_name

IDS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["e86", "@5", "..", "%", "/", " ", "%-", "-x"]
)


@given(st.lists(IDS, min_size=1, max_size=3))
def test_ids_make_a_name_and_come_back(ids) -> None:
    name = compound_name("adk", *ids)
    assert check_name(name) == name
    assert ids_of("adk", name) == tuple(ids)


@given(st.lists(IDS, min_size=2, max_size=2), st.lists(IDS, min_size=2, max_size=2))
def test_other_ids_have_another_name(one, other) -> None:
    assert (compound_name("adk", *one) == compound_name("adk", *other)) == (one == other)


def test_ids_that_are_too_long_are_told_by_a_hash() -> None:
    name = compound_name("adk", "a" * 200, "b" * 200)
    assert check_name(name) == name
    assert is_hashed("adk", name)
    assert ids_of("adk", name) is None
    assert compound_name("adk", "a" * 201, "b" * 199) != name


def test_a_name_of_somebody_else_has_no_ids() -> None:
    assert ids_of("adk", "strands/x") is None
    assert ids_of("adk", "adk") is None


def test_half_of_a_character_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        compound_name("adk", "\ud800")
