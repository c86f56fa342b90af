"""Whatever is changed in a bundle, the library and both readers refuse it alike: none of them is laxer than the page.

Each value of the lines is replaced by others, removed or given company, and the hash of the end line is made to fit, so
that only the format itself can object.
"""

import copy
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wakelog
from tests.readers.test_readers import read_each
from wakelog.log.bundle import export_bundle, import_bundle

REMOVED = object()


def fork_bundle() -> bytes:
    out = io.BytesIO()
    with wakelog.open("memory:") as store:
        parent = store.session("parent")
        with parent.turn("one"):
            parent.fact("a", "shared")
        fork = parent.fork("@1", name="fork")
        with fork.turn("two"):
            fork.fact("b", "x" * 5000)
        export_bundle(fork.log, out)
    return out.getvalue()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def others(value: Any) -> list[Any]:
    match value:
        case int():
            return [value + 1, -1, str(value), True, None]
        case str():
            return [value + "x", value[:-1], " " + value, value.upper(), None, 5, ""]
        case list():
            return [[*value, *value[:1]], value[1:], {}, None]
        case dict():
            return [{**value, "more": 1}, [], None]
        case _:
            return [0, ""]


def changed(lines: list[Any], path: tuple[Any, ...], other: Any) -> bytes:
    lines = copy.deepcopy(lines)
    place: Any = lines
    for step in path[:-1]:
        place = place[step]
    if other is REMOVED:
        del place[path[-1]]
    else:
        place[path[-1]] = other
    *content, end = lines
    data = b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in content)
    return data + json.dumps({**end, "sha256": hashlib.sha256(data).hexdigest()}).encode() + b"\n"


def is_taken(data: bytes) -> bool:
    with wakelog.open("memory:") as store:
        try:
            import_bundle(store.engine, io.BytesIO(data))
        except wakelog.WakelogError:
            return False
    return True


def test_no_change_is_taken_by_one_and_refused_by_another(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in fork_bundle().splitlines()]
    cases = [
        (path, other) for path in places(lines[:-1]) if len(path) > 1 for other in [REMOVED, *_others(lines, path)]
    ]
    assert len(cases) > 1000
    files = []
    for number, (path, other) in enumerate([((0, "wakelog"), 1), *cases]):
        files.append(tmp_path / f"{number}.bundle")
        files[-1].write_bytes(changed(lines, path, other))
    ours = [is_taken(each.read_bytes()) for each in files]
    assert ours[0], "unchanged"
    for name, answers in read_each([(each,) for each in files]).items():
        theirs = [answer["ok"] for answer in answers]
        differ = [case for case, one, other in zip([None, *cases], ours, theirs, strict=True) if one != other]
        assert differ == [], name


def _others(lines: list[Any], path: tuple[Any, ...]) -> list[Any]:
    value: Any = lines
    for step in path:
        value = value[step]
    return [each for each in others(value) if each != value or type(each) is not type(value)]
