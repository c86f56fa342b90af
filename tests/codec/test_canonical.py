"""RFC 8785: the vectors of its author, the numbers of its appendix B, and another library as a second opinion."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from wakelog.codec.canonical import canonical, hash_value
from wakelog.testing.strategies import values

JCS = Path(__file__).parents[1] / "vectors" / "jcs"
NAMES = sorted(path.stem for path in (JCS / "input").glob("*.json"))

# Appendix B: the bits of an IEEE double, and how it is written.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def test_there_are_vectors() -> None:
    assert len(NAMES) == 6
    assert len(NUMBERS) == 24


@pytest.mark.parametrize("name", NAMES)
def test_vector(name: str) -> None:
    value = json.loads((JCS / "input" / f"{name}.json").read_text(encoding="utf-8"))
    expected = bytes.fromhex((JCS / "outhex" / f"{name}.txt").read_text())
    assert canonical(value) == expected == (JCS / "output" / f"{name}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_number_of_appendix_b(bits: str, text: str) -> None:
    [number] = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number).decode() == text
    assert canonical({"n": [number]}).decode() == f'{{"n":[{text}]}}'


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
@pytest.mark.parametrize("hold", [lambda x: x, lambda x: [x], lambda x: {"a": x}])
def test_what_is_no_number_is_an_error(bits: str, hold: Any) -> None:
    [number] = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(ValueError):
        canonical(hold(number))


@given(values)
def test_any_value_comes_out_as_with_another_library(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.dictionaries(st.text(st.characters(min_codepoint=0xD000, exclude_categories=["Cs"])), st.integers(0, 9)))
def test_keys_beyond_the_basic_plane_are_sorted_by_utf_16_unit(value: dict[str, int]) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_float_comes_out_as_with_another_library(number: float) -> None:
    assert canonical([number]) == rfc8785.dumps([number])


@pytest.mark.parametrize("text", ["1.5", "1e5", "9.", "a1.0b", "\x00\x1f\x7f", "\u2028", "é1.5", "\U0001f600"])
def test_text_that_looks_like_a_number_stays_text(text: str) -> None:
    assert canonical({text: text}) == rfc8785.dumps({text: text})


@given(values)
def test_the_hash_does_not_depend_on_the_order_of_keys(value: Any) -> None:
    assert hash_value({"a": 1, "b": value}) == hash_value({"b": value, "a": 1})
    assert hash_value({"a": 1, "b": value}) != hash_value({"a": 2, "b": value})
