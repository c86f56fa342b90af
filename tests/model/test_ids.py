"""Session ids sort by age, contain their root, and differ from names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.errors import InvalidInputError
from wakelog.model.ids import SessionId, fork_id, is_session_id, parse_session_id, root_id, root_of

times = st.integers(0, (1 << 48) * 1000 - 1)
entropy = st.binary(min_size=10, max_size=10)


@given(times, entropy)
def test_a_root_id_has_the_form_of_an_id_and_is_its_own_root(at: int, random: bytes) -> None:
    session = root_id(at, random)
    assert is_session_id(session)
    assert parse_session_id(session) == session
    assert root_of(session) == session


@given(times, entropy, st.binary(min_size=5, max_size=5), st.binary(min_size=5, max_size=5))
def test_a_fork_of_a_fork_names_the_root_of_the_tree(at: int, random: bytes, one: bytes, other: bytes) -> None:
    root = root_id(at, random)
    child = fork_id(root, one)
    grandchild = fork_id(child, other)
    assert is_session_id(grandchild)
    assert root_of(child) == root_of(grandchild) == root
    assert (child == grandchild) == (one == other)


@given(times, times, entropy, entropy)
def test_ids_sort_by_age(a: int, b: int, one: bytes, other: bytes) -> None:
    if a // 1000 != b // 1000:
        assert (root_id(a, one) < root_id(b, other)) == (a < b)


@given(times, entropy, entropy)
def test_other_randomness_gives_another_id(at: int, one: bytes, other: bytes) -> None:
    assert (root_id(at, one) == root_id(at, other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s_",
        "checkout",
        "s_01HF7YAT00",
        "s_01HF7YAT000000000000000000 ",
        "s_01HF7YAT000000000000000000\n",
        "s_01hf7yat000000000000000000",
        "S_01HF7YAT000000000000000000",
        "s_01HF7YAT00000000000000000I",
        "s_01HF7YAT000000000000000000.",
        "s_01HF7YAT000000000000000000.ABC",
        "s_01HF7YAT000000000000000000.ABCDEFGH.ABCDEFGH",
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    assert not is_session_id(text)
    with pytest.raises(InvalidInputError):
        parse_session_id(text)


def test_an_id_has_the_length_that_indexes_count_on() -> None:
    root = root_id(1_700_000_000_000_000, bytes(10))
    assert root == SessionId("s_01HF7YAT000000000000000000")
    assert fork_id(root, bytes(5)) == "s_01HF7YAT000000000000000000.00000000"
