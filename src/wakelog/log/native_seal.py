"""Sealing by the native core: commits of usual events, in one call.

`seal_in_python` (seal.py) is the specification. The core has the machines and effects of the kinds that most turns
consist of, for what usually happens to them. Anything else (an illegal event, a failed call, a payload that was stored
before) it refuses, and the commit is sealed in Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

from wakelog.codec.records import PLAIN_KINDS, PayloadCollector, decode_delta, encode_delta
from wakelog.model.records import Record
from wakelog.native import core
from wakelog.state.digest import DEPTHS
from wakelog.state.fold import Fold, Undo
from wakelog.state.patch import MISSING

if TYPE_CHECKING:
    from wakelog.log.seal import SealStep

SealedRecords = tuple[tuple[Record, ...], bytes, int, tuple[int, int], tuple[str, ...], tuple[str, ...]]
"""Records, the chain's hash after them, the size of their headers and bodies, the first and the last turn, the kinds,
the paths of changed files."""


def _seal_natively(
    fold: Fold,
    undo: Undo,
    steps: Sequence[SealStep],
    collector: PayloadCollector,
    prev: bytes,
    first: int,
    at: int,
    salts: bytes,
) -> SealedRecords | None:
    """Seals with the core. If the core refuses, the state is as it was, and this returns None."""
    try:
        records, *rest = _sealer().seal(fold, undo, steps, collector.known, collector.new, prev, first, at, salts)
        return tuple(starmap(Record, records)), *rest
    except Exception:  # whatever it is, the specification has the last word
        fold.undo(undo)
        collector.new.clear()
        return None


@functools.cache
def _sealer() -> Any:
    return core.Sealer({cls: cls.kind for cls in PLAIN_KINDS}, DEPTHS, MISSING, encode_delta, decode_delta)


seal_natively: Callable[..., SealedRecords | None] | None = None if core is None else _seal_natively
