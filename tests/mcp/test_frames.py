"""Frames in a stream, wherever its pieces end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.codec.lines import Lines, ServerSentEvents
from wakelog.mcp.frames import frames_of


def never() -> None:
    raise AssertionError("everything here is short enough")


pieces = st.lists(st.integers(1, 9), max_size=60)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    out = []
    for size in sizes:
        out.append(data[:size])
        data = data[size:]
    return [*out, data]


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b" "))), pieces)
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    found = Lines(never)
    assert [line for piece in cut(stream, sizes) for line in found.feed(piece)] == lines


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=9)), pieces)
def test_events_are_the_same_however_the_stream_is_cut(texts: list[str], sizes: list[int]) -> None:
    stream = b"".join(f"id: 1\nevent: message\ndata: {json.dumps(t)}\n\n".encode() for t in texts)
    found = ServerSentEvents(never)
    assert [json.loads(d) for piece in cut(stream, sizes) for d in found.feed(piece)] == texts


def test_an_event_of_several_lines_is_one() -> None:
    assert list(ServerSentEvents(never).feed(b"data: {\r\ndata: }\r\n\r\n: comment\n\n")) == [b"{\n}"]


@given(pieces)
def test_a_line_too_long_to_read_is_told_and_the_next_is_read(sizes: list[int]) -> None:
    told: list[None] = []
    lines = Lines(lambda: told.append(None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wakelog.codec.lines.LINE_MAX", 8)
        stream = b"x" * 23 + b"\nok\n" + b"y" * 9 + b"\n" + b"z" * 8 + b"\n"
        assert [line for piece in cut(stream, sizes) for line in lines.feed(piece)] == [b"ok", b"z" * 8]
    assert len(told) == 2


@given(pieces)
def test_of_an_event_too_long_to_read_no_part_is_read_and_it_is_told_once(sizes: list[int]) -> None:
    told: list[None] = []
    events = ServerSentEvents(lambda: told.append(None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wakelog.codec.lines.LINE_MAX", 20)
        one_line = b"data: 1\ndata: " + b"2" * 30 + b"\ndata: " + b"3" * 30 + b"\ndata: 4\n\n"
        many_lines = b"data: 12345\n" * 5 + b"\n"
        stream = b"data: a\n\n" + one_line + b"data: b\n\n" + many_lines + b"data: c\n\n"
        assert [data for piece in cut(stream, sizes) for data in events.feed(piece)] == [b"a", b"b", b"c"]
    assert len(told) == 2


def test_a_batch_is_several_and_what_is_no_json_is_none() -> None:
    assert frames_of(b'[{"id":1},{"id":2},3]') == [{"id": 1}, {"id": 2}]
    for text in (b"", b"not json", b"\xff", b"[" * 100_000, b"3"):
        assert frames_of(text) == []
