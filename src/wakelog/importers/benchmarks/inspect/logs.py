"""Inspect: the log of an evaluation, as one JSON document, or as a zip of many (`.eval`).

An evaluation is a session, and so is each of its samples, where an agent worked. The evaluation's session lists its
samples as its sub-agents, with their scores. For a zip it has a record for each entry.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.importers import steps as st
from wakelog.importers.benchmarks.inspect.samples import SampleReader, label_of
from wakelog.importers.source.compressed_files import read_zip_entry
from wakelog.importers.source.files import (
    DOCUMENT_MAX,
    Sample,
    bad_transcript,
    digest,
    home_files,
    json_digest,
    read_document,
    storable,
)
from wakelog.importers.source.timestamps import microseconds
from wakelog.model.json_fields import as_dict, as_list, as_text, text_in, without_fields

NAME = "inspect"
TITLE = "Inspect"
find_in_home = home_files()
_ZIP = b"PK\x03\x04"
_SAMPLE = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d+)\.json")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,40}")
_ENDS = {"success": "completed", "error": "failed", "cancelled": "cancelled"}


def recognises(sample: Sample) -> bool:
    if sample.start.startswith(_ZIP):
        return any(name in sample.start for name in (b"_journal/start.json", b"header.json", b"_epoch_1.json"))
    if sample.first != b"{" or b'"resourceSpans"' in sample.start:
        return False
    if sample.has(b'"eval"', b'"status"') and any(w in sample.start for w in (b'"plan"', b'"samples"', b'"run_id"')):
        return True
    return sample.has(b'"events"') and (b'"working_start"' in sample.start or b'"spans"' in sample.start)


def transcripts(path: Path) -> Iterator[st.Transcript]:
    log = _ZipLog(path) if _is_zip(path) else _DocumentLog(path)
    yield st.Transcript(_eval_head(log.header, path), lambda: _eval_records(log, path))
    for key in log.samples:
        yield _sample_transcript(log, key, path)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _ZIP
    except OSError:
        return False


class _DocumentLog:
    """A log that is one document."""

    def __init__(self, path: Path) -> None:
        log = storable(read_document(path))
        if not isinstance(log, dict):
            raise bad_transcript(f"{path} is not a log of Inspect", "is the file complete?")
        samples = as_list(log.get("samples"))
        self.header: dict[str, Any] = {k: v for k, v in log.items() if k != "samples" or not isinstance(v, list)}
        self.samples: dict[tuple[str, str], Any] = {}
        for number, sample in enumerate(samples):
            fields = as_dict(sample)
            key = str(fields.get("id", f"n{number}")), str(fields.get("epoch", 1))
            self.samples[key if key not in self.samples else (f"{key[0]}#{number}", key[1])] = sample

    def sample(self, key: tuple[str, str]) -> Any:
        return self.samples[key]

    def entries(self) -> Iterator[tuple[str, Any, tuple[str, str] | None]]:
        began = {k: v for k, v in self.header.items() if k in ("version", "eval", "plan")}
        results = without_fields(self.header, began)
        yield "header", began, None
        for key in self.samples:
            yield f"samples/{key[0]}_epoch_{key[1]}", None, key
        # The results are rewritten while the evaluation runs.
        yield f"results-{json_digest(results)}", results, None


class _ZipLog:
    """A log that is a zip: `header.json` once it is finished, before that what it started with, and a document per
    sample."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with zipfile.ZipFile(path) as file:
                self._names = list(dict.fromkeys(info.filename for info in file.infolist()))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as exc:
            raise bad_transcript(
                f"{path} is not a complete zip file: {exc}", "is the evaluation over? import it then"
            ) from exc
        self.samples: dict[tuple[str, str], str] = {
            (match["id"], match["epoch"]): name for name in self._names if (match := _SAMPLE.fullmatch(name))
        }
        self.header: dict[str, Any] = {}
        for name in ("header.json", "_journal/start.json"):
            if name in self._names and "eval" not in self.header:
                self.header = as_dict(self._read(name)) or self.header

    def _read(self, name: str) -> Any:
        try:
            with zipfile.ZipFile(self._path) as file:
                if file.getinfo(name).file_size > DOCUMENT_MAX:
                    return {"broken": f"{name} is too large"}
                return storable(msgspec.json.decode(read_zip_entry(file, name)))
        except (
            *(zipfile.BadZipFile, zlib.error, OSError, EOFError, KeyError, ValueError, NotImplementedError),
            *(RuntimeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError),
        ) as exc:
            return {"broken": f"{name} cannot be read: {exc}"}

    def sample(self, key: tuple[str, str]) -> Any:
        return self._read(self.samples[key])

    def entries(self) -> Iterator[tuple[str, Any, tuple[str, str] | None]]:
        places = {name: key for key, name in self.samples.items()}
        for name in self._names:
            yield name, None if name in places else self._read(name), places.get(name)


_Log = _DocumentLog | _ZipLog


def _origin(header: dict[str, Any], path: Path) -> str:
    fields = as_dict(header.get("eval"))
    task = text_in(fields, "task").rpartition("/")[2] or path.stem
    ids = [as_text(fields.get(k)) for k in ("eval_id", "run_id", "task_id", "created")]
    # A log without any of them is identified by its location.
    own = " ".join(ids) if any(ids) else str(path.resolve())
    return f"{task[:40]}-{digest(own, 6)}"


def _sample_origin(header: dict[str, Any], path: Path, key: tuple[str, str]) -> str:
    id = key[0] if _PLAIN.fullmatch(key[0]) else f"{key[0][:30]}-{digest(key[0], 6)}"
    return f"{_origin(header, path)}-{id}-{key[1]}"


def _labels(header: dict[str, Any]) -> dict[str, str]:
    fields = as_dict(header.get("eval"))
    dataset = text_in(as_dict(fields.get("dataset")), "name")
    return {"task": text_in(fields, "task")[:200], "model": text_in(fields, "model")[:200], "dataset": dataset[:200]}


# The evaluation


def _eval_head(header: dict[str, Any], path: Path) -> st.TranscriptHead:
    labels = {**_labels(header), "status": text_in(header, "status")}
    task = text_in(as_dict(header.get("eval")), "task")
    return st.TranscriptHead(_origin(header, path), NAME, goal=f"evaluate {task}" if task else "", labels=labels)


def _eval_records(log: _Log, path: Path) -> Iterator[tuple[st.SourceRecord, int]]:
    if isinstance(log.header.get("events"), list) and "eval" not in log.header:
        # Events that were extracted from a log: they are all there is.
        yield from SampleReader(log.header).records()
        return
    created = microseconds(as_dict(log.header.get("eval")).get("created"))
    entries = list(log.entries())
    for number, (name, value, key) in enumerate(entries):
        broken = text_in(as_dict(value), "broken") if set(as_dict(value)) == {"broken"} else ""
        steps: list[st.Step] = []
        if number == 0 and as_dict(log.header.get("eval")):
            fields = as_dict(log.header.get("eval"))
            steps.append(st.PromptStep(f"{text_in(fields, 'task')} with {text_in(fields, 'model')}".strip()))
        if key is not None:
            steps += _sample_steps(log, path, key)
            value = {"sample": _sample_origin(log.header, path, key)}
        if name == "header.json" or name.startswith("results-"):
            steps += _ending_steps(log.header)
        rest = {"entry": name, "content": value}
        yield st.SourceRecord(name, tuple(steps), created, rest, broken=broken), len(str(value))


def _sample_steps(log: _Log, path: Path, key: tuple[str, str]) -> Iterator[st.Step]:
    sample = as_dict(log.sample(key))
    id = f"sample-{key[0]}-{key[1]}"
    failure = text_in(as_dict(sample.get("error")), "message")
    scores = {name: label_of(score) for name, score in as_dict(sample.get("scores")).items()}
    yield st.CallStep(id, "sample", {"id": key[0], "epoch": key[1], "description": f"sample {key[0]}"}, "pure")
    yield st.ResultStep(
        id,
        scores or sample.get("score"),
        "failed" if failure else "succeeded",
        error=failure[: st.ERROR_MAX],
        child=_sample_origin(log.header, path, key),
    )


def _ending_steps(header: dict[str, Any]) -> Iterator[st.Step]:
    for score in as_list(as_dict(header.get("results")).get("scores")):
        metrics = [as_dict(m) for m in as_dict(as_dict(score).get("metrics")).values()]
        if values := ", ".join(f"{text_in(m, 'name')} {label_of(m)}" for m in metrics):
            yield st.NoteStep(f"{text_in(as_dict(score), 'name')}: {values}")
    status = text_in(header, "status")
    if status in _ENDS:
        failure = text_in(as_dict(header.get("error")), "message")
        yield st.TurnEndStep(
            "completed" if status == "success" else "interrupted" if status == "cancelled" else "failed", failure
        )
        yield st.FinishStep(_ENDS[status])


# Its samples


def _sample_transcript(log: _Log, key: tuple[str, str], path: Path) -> st.Transcript:
    head = st.TranscriptHead(
        _sample_origin(log.header, path, key),
        NAME,
        labels={**_labels(log.header), "sample": key[0][:200], "epoch": key[1]},
        parent=_origin(log.header, path),
    )
    return st.Transcript(head, lambda: _sample_records(log.sample(key)))


def _sample_records(sample: Any) -> Iterator[tuple[st.SourceRecord, int]]:
    if not isinstance(sample, dict) or set(sample) == {"broken"}:
        why = text_in(as_dict(sample), "broken") or "a sample is not an object"
        yield st.SourceRecord("sample", rest=sample, broken=why), len(str(sample))
        return
    yield from SampleReader(sample).records()
