"""Whatever a fork did, adopting it gives its parent the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.log.test_adopt import messages
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS
from wakelog.state.diff import diff
from wakelog.testing.builders import new_session
from wakelog.testing.strategies import knowledge, patches

_STEPS = st.lists(knowledge, min_size=1, max_size=12)


@given(before=_STEPS, inside=_STEPS, rewinds=st.lists(st.integers(0, 30), max_size=2), data=st.data())
def test_whatever_a_fork_did_its_parent_has_the_same_afterwards(
    before: list[ev.Event], inside: list[ev.Event], rewinds: list[int], data: st.DataObject
) -> None:
    """Everything but positions: those of the fork's own events mean something else here."""
    parent = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), *before)
    fork = parent.fork()
    for n, event in enumerate(inside):
        fork.append(event)
        fork.append(ev.StatePatched(patch=data.draw(patches(fork.state()["data"]))))
        if n < len(rewinds):
            fork.rewind(1 + rewinds[n] % fork.head().seq)
    at = parent.head().seq
    parent.adopt(fork)
    mine, other = parent.state(), fork.state()
    # What the fork took out of its window is in it again: its keys name other events here.
    for part in (p for p in REWOUND_PARTS if p != "evicted_keys"):
        assert _bare(mine[part], part) == _bare(other[part], part), part
    head = parent.head().seq
    for position in _positions(mine):
        assert 0 < position <= head
    assert messages(parent) == messages(fork)
    assert verify(parent).ok
    again = Log(parent.engine, parent.id)
    assert again.state() == mine
    was = again.state(at)
    again.rewind(at, mode="undo")
    assert not any(diff(again.state()[part], was[part]) for part in REWOUND_PARTS)


def _bare(value: Any, part: str) -> Any:
    """A part without positions. Decisions are kept by position, so only what they say is compared."""
    if part == "decisions_made":
        return [{k: v for k, v in d.items() if k not in ("turn", "evidence")} for d in value.values()]
    if part == "working_set":
        return {group: set(names) for group, names in value.items()}
    if part in ("tools_used", "files_modified", "facts", "artefacts", "evicted_keys"):
        return {k: {n: v for n, v in e.items() if n not in ("seq", "last", "handle")} for k, e in value.items()}
    return value


def _positions(state: dict) -> list[int]:
    found = [int(key) for key in (*state["decisions_made"], *state["dead_ends"])]
    found += [f["seq"] for f in state["facts"].values()]
    found += [f["last"] for f in (*state["files_modified"].values(), *state["tools_used"].values())]
    return found + [n for group in state["working_set"].values() for n in group.values()]
