"""The state after adopting a fork: the fork's restorable parts, with positions translated to this history.

After the fork point a fork and its parent use the same numbers for different events. In the adopted state, a position
of the fork becomes that of the event's copy here, or else that of the adopting event. Entries that a copied event
writes itself are left out, so that the copy is their writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.patch import copy

Doc = dict[str, Value]
Here = Callable[[Value], Value]
"""From a position in the fork to one in this history."""


def adopted_parts(
    base: Doc, fork: Doc, *, shared: Seq, seq: Seq, places: Mapping[Seq, Seq], files: Mapping[str, int]
) -> Doc:
    """The restorable parts after the adopting event at `seq` and before the copies that follow it.

    `base` is the state that the rewind before it restores, `shared` the last event of both histories. `places` maps an
    event of the fork to the position of its copy, `files` a path to the number of its changes that are copied.
    """

    def here(position: Value) -> Value:
        if type(position) is not int or position <= shared:
            return position
        return places.get(position, seq)

    out: Doc = {part: copy(fork[part]) for part in REWOUND_PARTS}
    out["data"] = _unmarked(out["data"], here)
    out["decisions_made"] = {key: value for key, value in out["decisions_made"].items() if int(key) <= shared}
    # A compaction's copy lists itself. Other keys of the fork's own part would name other events here, so they are
    # dropped, and what they took out of the window is in it again.
    out["evicted_keys"] = {k: e for k, e in out["evicted_keys"].items() if _is_shared(k, e, shared, places)}
    for part, field in (("tools_used", "last"), ("evicted_keys", "seq")):
        for entry in out[part].values():
            entry[field] = here(entry[field])
    for part in ("facts", "artefacts"):
        out[part] = _base_kept(base[part], out[part], places)
        for entry in out[part].values():
            entry["seq"] = here(entry["seq"])
    out["facts"] = _unmarked(out["facts"], here)
    for group in out["working_set"].values():
        group.update({name: here(position) for name, position in group.items()})
    out["files_modified"] = _files(base["files_modified"], out["files_modified"], files, here)
    if "goal_from" in fork:
        out["goal_from"] = {**fork["goal_from"], "seq": here(fork["goal_from"]["seq"])}
    if out["last_error"] is not None:
        out["last_error"]["seq"] = here(out["last_error"]["seq"])
    return out


def _is_shared(key: str, left: Doc, shared: Seq, places: Mapping[Seq, Seq]) -> bool:
    """Whether what a key took out of the window is in both histories; a range is called `e5..e40`."""
    end = key.rpartition("..e")[2]
    last = int(end) if ".." in key and end.isdecimal() else left["handle"]
    return left["handle"] <= shared and last <= shared and left["seq"] not in places


def _base_kept(base: Doc, part: Doc, places: Mapping[Seq, Seq]) -> Doc:
    """A part without the entries that copies will write: those keep the value of the base until then."""
    out: Doc = {}
    for key, entry in part.items():
        if entry["seq"] not in places:
            out[key] = entry
        elif key in base:
            out[key] = copy(base[key])
    return out


def _files(base: Doc, part: Doc, copied: Mapping[str, int], here: Here) -> Doc:
    out: Doc = {}
    for path, entry in part.items():
        before = base.get(path)
        rest = entry["changes"] - copied.get(path, 0)
        if before is not None and rest == before["changes"]:
            out[path] = copy(before)
        elif rest > 0:
            out[path] = {**entry, "changes": rest, "last": here(entry["last"])}
    return out


def _unmarked(value: Value, here: Here) -> Value:
    """The value, with marks of erased content translated to events of this history."""
    if type(value) is dict:
        if "$erased" in value:
            return {"$erased": here(value["$erased"])}
        return {key: _unmarked(item, here) for key, item in value.items()}
    return [_unmarked(item, here) for item in value] if type(value) is list else value
