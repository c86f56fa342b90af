"""What outlives a prune: the rows that can be made again from a state.

A pruned session has lost what its events said, but not what is durable by promise. The base that the prune left holds
decisions, facts, dead ends and which files were changed, each with the seq of its event. These get their rows and their
words back; how many lines a file gained is not among what is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.index.facets import as_json, as_text, decision_of, text_of
from wakelog.index.rows import Batch, SessionRow
from wakelog.model.ids import Seq
from wakelog.model.values import Value


def keep_durable(batch: Batch, row: SessionRow, doc: dict[str, Value], upto: Seq) -> None:
    """Adds the rows of what `doc`, the state at `upto`, tells about the session's own events."""
    no, added = row.no, batch.added

    def own(part: str, place: str = "") -> Iterator[tuple[Seq, str, dict[str, Value]]]:
        """The entries of a part that come from this session's events, which are its keys or stand in `place`."""
        for key, entry in doc[part].items():
            seq = entry.get(place) if place else int(key) if key.isdigit() else 0
            if type(seq) is int and row.first <= seq <= upto:
                yield seq, key, entry

    for seq, _, decision in own("decisions_made"):
        added["wl_decision"].append((no, seq, *decision_of(decision)))
        batch.add_text(no, seq, _words(decision))
    for seq, key, fact in own("facts", "seq"):
        added["wl_fact"].append((no, seq, key, as_json(fact.get("value")), 0))
        batch.add_text(no, seq, _words({key: fact.get("value")}))
    for seq, _, dead_end in own("dead_ends"):
        batch.add_text(no, seq, _words(dead_end))
    for seq, child, _ in own("subagents", "seq"):
        added["wl_spawn"].append((no, seq, 0, child))
    for seq, path, used in own("files_modified", "last"):
        added["wl_file"].append((no, seq, path, as_text(used.get("change")), 0, 0))
        batch.add_text(no, seq, path)


def _words(value: Value) -> str:
    return text_of(value, lambda mention: None)
