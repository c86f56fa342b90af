"""Values are counted before they are decoded: many are noticed, and what stands in strings does not count."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.codec.value_count import is_heavy_json, is_heavy_msgpack

_texts = st.text(st.sampled_from('a",:[]{}\\\n'), max_size=12)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | st.floats(allow_nan=False) | _texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(_texts, inner, max_size=6),
    max_leaves=60,
)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


@given(_values)
def test_more_values_than_allowed_are_noticed_and_few_are_not(value: Any) -> None:
    count = _count(value)
    text = json.dumps(value, separators=(",", ":")).encode()
    packed = msgspec.msgpack.encode(value)
    assert is_heavy_json(text, count - 1) or count == 1
    assert is_heavy_msgpack(packed, count - 1)
    assert not is_heavy_json(text, 3 * count + 1)
    assert not is_heavy_msgpack(packed, 2 * count)


@pytest.mark.parametrize("size", [10, 200, 70_000])
def test_the_content_of_strings_and_bytes_is_one_value(size: int) -> None:
    content = b'[],"\\{}:' * size
    assert not is_heavy_json(json.dumps({"a": content.decode()}).encode(), 10)
    assert not is_heavy_msgpack(msgspec.msgpack.encode({"a": content, "b": content.decode()}), 10)


def test_a_text_that_is_cut_off_is_counted_too() -> None:
    assert is_heavy_json(b"[" + b"[]," * 1000, 900)
    assert is_heavy_json(b'["' + b"a" * 10 + b'","' * 1000, 100)
    assert is_heavy_msgpack(b"\xdd\x7f\xff\xff\xff" + b"\x90" * 1000, 900)
    assert not is_heavy_msgpack(b"\xc6\x7f\xff\xff\xff" + b"\x90" * 1000, 900)
