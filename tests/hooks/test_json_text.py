"""Edits of JSON as text: only what is added differs, and taking it back gives every byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.hooks.json_text import BadJsonError, add_member, append_item, insert, parse, remove, undo_insertions

TEXTS = [
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    '{"a": 1}',
    '{"a":1,"hooks":{"Stop":[{"hooks":[]}]}}',
    '{\n  "a": 1\n}\n',
    '{\r\n\t"a": {"x": [1, 2]},\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}',
    '{\n      "hooks": {},\n  "odd": [ ]   }\n\n',
    '\ufeff{\n "a": "\\u00e9 \\" } ]"\n}',
]
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["a", "hooks", "Stop", "b"]), values, max_size=4)


@pytest.mark.parametrize("text", TEXTS)
def test_a_member_is_added_and_everything_else_stays(text: str) -> None:
    steps = add_member(text, ("hooks",), "New", [{"x": 1}])
    after = insert(text, steps)
    there = json.loads(text.removeprefix("\ufeff"))
    assert json.loads(after.removeprefix("\ufeff")) == {**there, "hooks": {**there.get("hooks", {}), "New": [{"x": 1}]}}
    assert undo_insertions(after, steps) == text


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_file_becomes_a_document(text: str) -> None:
    steps = add_member(text, ("hooks",), "New", [1])
    after = insert(text, steps)
    assert json.loads(after.removeprefix("\ufeff")) == {"hooks": {"New": [1]}}
    assert undo_insertions(after, steps) == text


@given(objects, st.sampled_from([None, 1, 2, 4, "\t"]), values)
def test_adding_and_removing_in_any_document(document, indent, value) -> None:
    if not isinstance(document.get("hooks", {}), dict):
        document["hooks"] = {}
    document.get("hooks", {}).pop("New", None)
    text = json.dumps(document, indent=indent)
    steps = add_member(text, ("hooks",), "New", value)
    after = insert(text, steps)
    wanted = {**document, "hooks": {**document.get("hooks", {}), "New": value}}
    assert json.loads(after) == wanted
    assert parse(after).value == wanted
    assert undo_insertions(after, steps) == text
    removed = remove(after, ("hooks", "New"))
    assert json.loads(removed) == {**document, "hooks": document.get("hooks", {})}
    if document.get("hooks"):
        assert removed == text


@given(st.lists(values, max_size=4), st.sampled_from([None, 2]), values)
def test_appending_to_any_list(items, indent, value) -> None:
    text = json.dumps({"a": items}, indent=indent)
    steps = append_item(text, ("a",), value)
    after = insert(text, steps)
    assert json.loads(after) == {"a": [*items, value]}
    assert undo_insertions(after, steps) == text
    assert json.loads(remove(after, ("a", len(items)))) == {"a": items}


def test_comments_are_left_where_they_are() -> None:
    text = '// mine\n{\n  /* both */ "a": 1 // one\n}\n'
    after = insert(text, add_member(text, (), "b", 2, comments=True))
    assert after == '// mine\n{\n  /* both */ "a": 1,\n  "b": 2 // one\n}\n'
    with pytest.raises(BadJsonError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ('{"a" 1}', "colon"),
        ("{\n  a: 1\n}", "line 2, column 3"),
        ('{"a": [1 2]}', "comma"),
        ('{"a": tru}', "no JSON"),
        ('{"a": 1', "comma or }"),
        ("{} {}", "after its end"),
        ("[" * 200, "too deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, where: str) -> None:
    with pytest.raises(BadJsonError, match=where):
        parse(text)


def test_what_was_changed_cannot_be_taken_back() -> None:
    steps = add_member("{}", (), "a", 1)
    assert undo_insertions(insert("{}", steps).replace("1", "2"), steps) is None
