"""Aligns two courses: which step of one belongs to which step of the other.

Equal steps (kind, name, input) are matched by a longest common subsequence, so that one inserted step does not shift
all that follow. Between those matches, steps of the same kind and name are matched the same way, so a call with another
input is next to the call it replaces. The rest is on one side only.

A row's verdict is about differences that matter to a person. A provider's id of a call, its time and its number of
tries are reported separately, as `minor`, and do not make two steps differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import msgspec

from wakelog.compare.lcs import common
from wakelog.compare.normal_form import digest, normalize_payloads, normalize_volatile
from wakelog.compare.steps import Step, fetch_payloads, is_whole
from wakelog.log import Log
from wakelog.model.parts import Asked, Text, parts_of
from wakelog.model.values import Value

Verdict = Literal["same", "differs", "only a", "only b", "unknown"]


class AlignedStep(msgspec.Struct, frozen=True):
    """One step of each course, or of one of them, by its place in the course (from 0)."""

    a: int | None
    b: int | None
    verdict: Verdict
    what: tuple[str, ...] = ()
    """What differs: prompt, model, parameters, context, input, content, outcome, error, output, reason, trust."""
    minor: tuple[str, ...] = ()
    """What differs but does not count: `ids or times`, `shape` (the same words in the formats of two programs),
    `tries`, `reused`."""


def align(log_a: Log, a: tuple[Step, ...], log_b: Log, b: tuple[Step, ...]) -> Iterator[AlignedStep]:
    """Every step of both courses, in order, each in one row."""
    ends = (len(a), len(b))
    i = j = 0
    for at_a, at_b in itertools.chain(common([s.key for s in a], [s.key for s in b]), [ends]):
        yield from _align_gap(log_a, a, i, at_a, log_b, b, j, at_b)
        if (at_a, at_b) != ends:
            yield _row(log_a, a[at_a], at_a, log_b, b[at_b], at_b)
        i, j = at_a + 1, at_b + 1


def _align_gap(
    log_a: Log, a: tuple[Step, ...], i: int, end_a: int, log_b: Log, b: tuple[Step, ...], j: int, end_b: int
) -> Iterator[AlignedStep]:
    """Aligns the steps between two equal ones by kind and name."""
    alike = common([_kind_and_name(s) for s in a[i:end_a]], [_kind_and_name(s) for s in b[j:end_b]])
    for pair_a, pair_b in [*((i + x, j + y) for x, y in alike), (end_a, end_b)]:
        yield from (AlignedStep(n, None, "only a") for n in range(i, pair_a))
        yield from (AlignedStep(None, n, "only b") for n in range(j, pair_b))
        if (pair_a, pair_b) != (end_a, end_b):
            yield _row(log_a, a[pair_a], pair_a, log_b, b[pair_b], pair_b)
        i, j = pair_a + 1, pair_b + 1


def _kind_and_name(step: Step) -> tuple[str, str]:
    return (step.kind, "" if step.kind == "model" else step.name)


def _row(log_a: Log, a: Step, at_a: int, log_b: Log, b: Step, at_b: int) -> AlignedStep:
    what, minor = _differences(log_a, a, log_b, b)
    if (a.gone or b.gone) and (a.key != b.key or a.result != b.result):
        return AlignedStep(at_a, at_b, "unknown", (), minor)
    return AlignedStep(at_a, at_b, "differs" if what else "same", what, minor)


_CONTENT = {"input": "prompt", "tool": "input", "model": "input", "decision": "choice", "fact": "value"}


def _differences(log_a: Log, a: Step, log_b: Log, b: Step) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What differs between two steps of one kind and name, the most important first, and what does not count."""
    what: list[str] = []
    minor: list[str] = []
    if a.kind == "model":
        what += _compare_requests(log_a, a, log_b, b)
    if a.exact_key != b.exact_key:
        same = a.key == b.key or _same_inside(log_a, a.input, log_b, b.input)
        (minor if same else what).append("ids or times" if same else _CONTENT.get(a.kind, "content"))
    if a.exact_result != b.exact_result:
        if a.result == b.result or _same_inside(log_a, _result(a), log_b, _result(b)):
            minor.append("ids or times")
        elif a.kind == "model" and _is_same_answer(log_a, a, log_b, b):
            minor.append("shape")
        else:
            what += _compare_results(a, b)
    if a.trust != b.trust:
        what.append("trust")
    if [t.outcome for t in a.tries] != [t.outcome for t in b.tries] and len(a.tries) + len(b.tries) > 2:
        minor.append("tries")
    if bool(a.reused) != bool(b.reused):
        minor.append("reused")
    return tuple(what), tuple(dict.fromkeys(minor))


def _compare_requests(log_a: Log, a: Step, log_b: Log, b: Step) -> list[str]:
    """What differs in the requests of two model calls. Their keys do not include that."""
    what = []
    if a.model != b.model and a.model and b.model:
        what.append("model")
    if normalize_payloads(parameters_of(a)) != normalize_payloads(parameters_of(b)):
        what.append("parameters")
    if a.context_hash and b.context_hash and a.context_hash != b.context_hash:
        what.append("context")
    input_a, input_b = own_input(a), own_input(b)
    if digest(normalize_volatile(input_a)) != digest(normalize_volatile(input_b)) and not _same_inside(
        log_a, input_a, log_b, input_b
    ):
        what.append("input")
    return what


def own_input(step: Step) -> Value:
    """The input of a step. For a model call: without its parameters and the hash of its window, which are compared
    separately."""
    if step.kind != "model" or type(step.input) is not dict or "$payload" in step.input:
        return step.input
    return {k: v for k, v in step.input.items() if k not in step.params and (not v or v != step.context_hash)} or None


def parameters_of(step: Step) -> dict[str, object]:
    return {name: value for name, value in step.params.items() if name != "model"}


def _compare_results(a: Step, b: Step) -> list[str]:
    if a.kind == "decision":
        return ["reason"]
    if a.outcome != b.outcome:
        return ["outcome", "error"] if a.error is not None and b.error is not None else ["outcome"]
    if digest(normalize_volatile(a.error)) != digest(normalize_volatile(b.error)):
        return ["error"]
    return ["output"]


def _is_same_answer(log_a: Log, a: Step, log_b: Log, b: Step) -> bool:
    """Whether two answers say the same in the formats of two providers or frameworks. Some formats leave out the
    requested calls; those are separate steps anyway."""
    if (a.outcome, a.error) != (b.outcome, b.error) or a.output is None or b.output is None:
        return False
    parts_a, parts_b = (parts_of(fetch_payloads(log, step.output)) for log, step in ((log_a, a), (log_b, b)))
    asked_a, asked_b = ([part.name for part in parts if isinstance(part, Asked)] for parts in (parts_a, parts_b))
    said_a, said_b = ([part for part in parts if not isinstance(part, Asked)] for parts in (parts_a, parts_b))
    return said_a == said_b and (asked_a == asked_b or not asked_a or not asked_b)


def in_one_shape(step: Step, a: Value, b: Value) -> tuple[Value, Value]:
    """Two results in a form in which they can be shown side by side. Answers in different formats are reduced to their
    text."""
    if step.kind != "model" or _first_block(a) == _first_block(b):
        return a, b
    said_a, said_b = ([part.text for part in parts_of(value) if isinstance(part, Text)] for value in (a, b))
    return {"said": " ".join(said_a)}, {"said": " ".join(said_b)}


def _first_block(answer: Value) -> tuple[object, ...]:
    """Types and field names at the start of an answer: they differ from one program to another."""
    content = answer.get("content") if type(answer) is dict else None
    first = content[0] if type(content) is list and content else content
    return (type(answer), *sorted(first)) if type(first) is dict else (type(answer), type(first))


def _result(step: Step) -> dict[str, object]:
    return {"outcome": step.outcome, "error": step.error, "output": step.output, **said_by_number(step)}


def said_by_number(step: Step) -> dict[str, Value]:
    return {f"said {n}": said for n, said in enumerate(step.said)}


def _same_inside(log_a: Log, a: object, log_b: Log, b: object) -> bool:
    """Whether two values are the same once their payloads are fetched, apart from ids and times."""
    if is_whole(a) or is_whole(b):
        return False
    return digest(normalize_volatile(fetch_payloads(log_a, a))) == digest(normalize_volatile(fetch_payloads(log_b, b)))
