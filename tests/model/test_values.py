"""The quick check accepts only values that the full check leaves unchanged."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from wakelog.model import values

scalars = st.one_of(
    st.text(max_size=4),
    st.just("\ud800"),
    st.none(),
    st.booleans(),
    st.integers(-(1 << 60), 1 << 60),
    st.floats(),
    st.binary(max_size=4),
)
keys = st.sampled_from(["a", "$payload", "$object", "é", "\ud800"]) | st.integers()
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4) | st.tuples(inner),
    max_leaves=8,
)


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


@given(nested)
@example(deep(64))
@example(deep(65))
@example(2**53)
@example(float("nan"))
@example([1.5, -1.5, 2.0])
def test_a_plain_value_is_one_that_a_closer_look_leaves_as_it_is(value: Any) -> None:
    if values.is_plain_in_python(value):
        assert values._check(value, "value", 0, False) is value


def test_what_tools_are_given_is_plain() -> None:
    assert values.is_plain_in_python(
        {"path": "a.py", "lines": [1, 2.5, None, True], "more": {"é": "ü", "$object": "x"}}
    )
