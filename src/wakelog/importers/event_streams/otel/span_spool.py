"""Stores incoming spans on disk until their trace can be read.

A span is sent when it ends: children before their parents, from several processes, some late, some twice. A turn can
only be read from the top. So each trace has a file, `TRACE.jsonl`, with what arrived so far, synced before the sender
gets its answer. When every parent has arrived and nothing came for a moment, or after a longer silence, the file is
imported by the importer for span files: live intake and import share one mapping.

The file stays for a while. A late span is added to it, and the file is imported again, which skips what the session
already has. A line {"imported": n} says how many lines were imported before, so that a late span is recognised. If a
process dies, the files stay, and the next process continues.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import NotAllowedError, UnavailableError
from wakelog.importers.event_streams.otel.spans import MARK, NAME, OWNER
from wakelog.importers.transcript_import import ImportReport, import_transcript
from wakelog.model.json_fields import as_dict, as_list, text_in, without_fields
from wakelog.otlp import spans_in
from wakelog.store import Store

SPOOL_MAX = 1 << 30
"""How many bytes may wait in total,"""
TRACE_MAX = 64 << 20
"""and how many of one trace."""
QUIET_S = 1.0
IDLE_S = 30.0
KEPT_S = 3600.0
_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN = re.compile(r"(?!0{16})[0-9a-f]{16}")
_GEN_AI = b'"gen_ai.'


class StoredSpans(msgspec.Struct, frozen=True):
    """The result for a document: how many spans are stored, and how many were rejected for good."""

    spans: int
    rejected: int = 0
    why: str = ""


class _Trace(msgspec.Struct):
    """What is known about a file without reading it again."""

    size: int = 0
    lines: int = 0
    imported: int = 0
    """How many of its lines were imported."""
    last: float = 0.0
    """When the last span arrived."""
    spans: set[str] = msgspec.field(default_factory=set)
    parents: set[str] = msgspec.field(default_factory=set)
    is_gen_ai: bool = False

    @property
    def is_whole(self) -> bool:
        return self.parents <= self.spans


class SpanSpool:
    """A folder of traces, used by one process at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        quiet_s: float = QUIET_S,
        idle_s: float = IDLE_S,
        spool_max: int = SPOOL_MAX,
        trace_max: int = TRACE_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self._clock = folder, clock
        self._quiet_s, self._idle_s, self._spool_max, self._trace_max = quiet_s, idle_s, spool_max, trace_max
        self._lock = threading.Lock()
        self._traces: dict[str, _Trace] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._holder = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._holder)
            raise NotAllowedError(
                f"another process receives spans into {folder}",
                kind="spool-taken",
                hint="stop it, or choose another --spool",
            ) from exc
        for path in sorted(folder.glob("*.jsonl")):
            self._traces[path.stem] = self._recover(path)

    def close(self) -> None:
        """Releases the folder for another process. Waiting files stay."""
        os.close(self._holder)

    def take(self, document: dict[str, Any]) -> StoredSpans:
        """Stores the spans of a document. They are on disk when this returns. UnavailableError if there is no room: the
        sender retries."""
        parts, rejected = _split(document)
        why = "a span without a valid traceId and spanId" if rejected else ""
        count = 0
        with self._lock:
            for trace, documents in parts.items():
                data = {"resourceSpans": documents}
                line = msgspec.json.encode(data) + b"\n"
                size = sum(1 for _ in spans_in(data))
                known = self._traces.get(trace)
                if (known.size if known else 0) + len(line) > self._trace_max:
                    rejected, why = rejected + size, f"trace {trace} is too large"
                    continue
                if sum(t.size for t in self._traces.values()) + len(line) > self._spool_max:
                    raise UnavailableError("the spool of spans is full", kind="spool-full")
                self._append(trace, line)
                self._update(self._traces.setdefault(trace, _Trace()), line)
                count += size
        return StoredSpans(count, rejected, why)

    def ready(self, *, everything: bool = False) -> list[str]:
        """The traces that have new spans and can be imported."""
        now = self._clock()
        with self._lock:
            return [
                id
                for id, trace in self._traces.items()
                if trace.lines > trace.imported
                and trace.is_gen_ai
                and (everything or now - trace.last >= (self._quiet_s if trace.is_whole else self._idle_s))
            ]

    def bring_in(self, store: Store, trace: str) -> ImportReport:
        """Imports what has arrived of a trace."""
        copy = self.folder / f"{trace}.import"
        with self._lock:
            lines = self._traces[trace].lines
            copy.write_bytes(self._path(trace).read_bytes())
        try:
            report = import_transcript(store, copy, format=NAME)
        finally:
            with contextlib.suppress(OSError):
                copy.unlink()
        owner = store.resume(report.sessions[0].session).log.part("labels").get("origin", "") if report.sessions else ""
        with self._lock:
            mark = msgspec.json.encode({MARK: lines, OWNER: owner}) + b"\n"
            self._append(trace, mark)
            self._update(self._traces[trace], mark)
        return report

    def forget(self, *, after_s: float = KEPT_S) -> int:
        """Deletes traces that are imported, or are not about AI, once nothing arrived for long."""
        now, count = self._clock(), 0
        with self._lock:
            for id, trace in list(self._traces.items()):
                is_done = trace.imported >= trace.lines
                is_unrelated = not trace.is_gen_ai and now - trace.last >= self._idle_s
                if (is_done and now - trace.last >= after_s) or is_unrelated:
                    self._path(id).unlink(missing_ok=True)
                    del self._traces[id]
                    count += 1
        return count

    def _path(self, trace: str) -> Path:
        return self.folder / f"{trace}.jsonl"

    def _append(self, trace: str, line: bytes) -> None:
        try:
            file = os.open(self._path(trace), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise UnavailableError(f"spans cannot be kept: {exc.strerror}", kind="spool-full") from exc
        before = os.fstat(file).st_size
        try:
            if os.write(file, line) != len(line):
                raise OSError(0, "no space left")
            os.fsync(file)
        except OSError as exc:
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise UnavailableError(f"spans cannot be kept: {exc.strerror}", kind="spool-full") from exc
        finally:
            os.close(file)

    def _update(self, trace: _Trace, line: bytes) -> None:
        value = msgspec.json.decode(line)
        trace.size += len(line)
        trace.lines += 1
        if MARK in value:
            # The mark itself needs no import.
            trace.imported = value[MARK] + (trace.lines - 1 == value[MARK])
            return
        trace.last = self._clock()
        trace.is_gen_ai = trace.is_gen_ai or _GEN_AI in line
        for span in spans_in(value):
            trace.spans.add(text_in(span, "spanId"))
            if parent := text_in(span, "parentSpanId"):
                trace.parents.add(parent)

    def _recover(self, path: Path) -> _Trace:
        """Reads the file that an earlier process left. An incomplete last line was never acknowledged, so it is cut
        off."""
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
        trace = _Trace()
        for line in content[:whole].splitlines(keepends=True):
            self._update(trace, line)
        return trace


def _split(document: dict[str, Any]) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """Splits a document by trace, keeping the resource and scope of each group of spans. Also counts spans without
    valid ids."""
    parts: dict[str, list[dict[str, Any]]] = {}
    bad = 0
    for resource in as_list(document.get("resourceSpans")):
        above = without_fields(as_dict(resource), ("scopeSpans",))
        for scope in as_list(as_dict(resource).get("scopeSpans")):
            beside = without_fields(as_dict(scope), ("spans",))
            groups: dict[str, list[dict[str, Any]]] = {}
            for span in map(as_dict, as_list(as_dict(scope).get("spans"))):
                trace, id = text_in(span, "traceId").lower(), text_in(span, "spanId").lower()
                if _TRACE.fullmatch(trace) and _SPAN.fullmatch(id):
                    groups.setdefault(trace, []).append(span)
                else:
                    bad += 1
            for trace, spans in groups.items():
                parts.setdefault(trace, []).append({**above, "scopeSpans": [{**beside, "spans": spans}]})
    return parts, bad
