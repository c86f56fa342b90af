"""Scores the rules against labels, strictly: a minor item and a second item for one label are errors.

A label names every position where the same thing is said or done. An item hits a label when the text it quotes, or the
effect it stands for, is at one of them. Positions after the last labelled one of a file are not judged.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.insight.transcripts import CORPUS, Transcript, read_transcript
from wakelog.insight.blocks import Did, Finding, SpokenText, TextSpan
from wakelog.insight.derivation import minor_findings
from wakelog.insight.rules import Carry, derive

KINDS = ("goal", "decision", "approach_change", "dead_end", "check", "write", "pending", "correction", "preference")
_NAMES = {"file": "write", "redirect": "correction", "failure_report": "correction"}


class Tally:
    """Counts of one kind: items shown, right ones, labels demanded, found ones; and reasons shown and right."""

    def __init__(self) -> None:
        self.shown = self.right = self.demanded = self.found = self.reasons = self.right_reasons = 0
        self.minor = 0

    @property
    def precision(self) -> float:
        return self.right / self.shown if self.shown else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.demanded if self.demanded else 1.0

    @property
    def reason_share(self) -> float:
        return self.right_reasons / self.reasons if self.reasons else 1.0

    def __str__(self) -> str:
        reason = f" reason {self.right_reasons}/{self.reasons}" if self.reasons else ""
        return (
            f"P {self.right}/{self.shown}={self.precision:.2f} (minor {self.minor})"
            f" R {self.found}/{self.demanded}={self.recall:.2f}{reason}"
        )


def load_labels(path: Path | None = None) -> list[dict[str, Any]]:
    """The labels of transcripts, with the user's turns of the same transcripts as labels of their own."""
    data = json.loads((path or CORPUS / "labels" / "labels.json").read_text(encoding="utf-8"))
    labels: list[dict[str, Any]] = data["transcripts"] if isinstance(data, dict) else data
    files = {label["key"]: label["file"] for label in labels}
    turns = data.get("user_turns", {}) if isinstance(data, dict) else {}
    for kind, halves in turns.items():
        for half, by_key in halves.items():
            for key, places in by_key.items():
                for place in places.split():
                    if key in files:
                        labels.append(
                            {
                                "file": files[key],
                                "key": key,
                                "half": half,
                                "kind": kind,
                                "at": [place.lstrip("?")],
                                "reason": [],
                                "required": not place.startswith("?"),
                                "user_turn": True,
                            }
                        )
    return labels


def positions(transcript: Transcript, finding: Finding) -> list[str]:
    """The positions of a finding in its file: its words first, then its calls."""
    said = transcript.place.get((finding.span.seq, finding.span.block))
    calls = [transcript.place.get((seq, -1)) for seq in finding.calls]
    return [p for p in (said, *calls) if p is not None]


def _number(position: str) -> int:
    return int(re.findall(r"\d+", position.split("#")[0].split("!")[0])[-1])


def score_file(
    transcript: Transcript,
    findings: list[Finding],
    labels: list[dict[str, Any]],
    tallies: dict[str, Tally],
    misses: list[str] | None = None,
) -> None:
    """Adds one transcript to the tallies."""
    last = max(_number(a) for label in labels for a in label["at"] if not label.get("user_turn"))
    user_last = max((_number(a) for label in labels for a in label["at"]), default=last)
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        by_kind[label["kind"]].append(label)
    used: set[int] = set()
    texts = {(b.seq, b.block): b.text for t in transcript.turns for b in t.blocks if isinstance(b, SpokenText)}
    for label in labels:
        if label["required"] and label["kind"] in KINDS:
            tallies[label["kind"]].demanded += 1
    for finding in findings:
        kind = _NAMES.get(finding.kind, finding.kind)
        places = positions(transcript, finding)
        limit = user_last if kind in ("correction", "preference") else last
        if kind not in KINDS or not places or _number(places[0]) > limit:
            continue
        if finding.detail == "carried" and not any(
            label.get("carry") and set(label["at"]) & set(places) for label in labels
        ):
            continue  # it claims no new goal; where one was demanded, that is a miss
        tally = tallies[kind]
        tally.shown += 1
        hits = [n for n, label in enumerate(by_kind[kind]) if _hits(transcript, places, label, finding)]
        fresh = [n for n in hits if by_kind[kind][n]["required"] and id(by_kind[kind][n]) not in used]
        if not fresh:
            tally.minor += bool(hits)
            if misses is not None:
                why = "minor" if hits and not by_kind[kind][hits[0]]["required"] else "twice" if hits else "wrong"
                misses.append(f"  {why} {kind} {_line(texts, finding, places)}")
            continue
        label = by_kind[kind][next((n for n in fresh if places[0] in by_kind[kind][n]["at"]), fresh[0])]
        used.add(id(label))
        tally.right += 1
        tally.found += 1
        if label["reason"] and kind in ("decision", "approach_change", "dead_end") and finding.reason:
            tally.reasons += 1
            at = transcript.place[(finding.reason.seq, finding.reason.block)]
            right = any(_same(at, r, finding.reason) for r in label["reason"])
            tally.right_reasons += right
            if misses is not None and not right:
                misses.append(f"  REASON {places} {_quote(texts, finding.reason)!r} for {label['reason'][:3]}")
        if misses is not None:
            misses.append(f"  ok {kind} {_line(texts, finding, places)}")
    if misses is not None:
        for label in labels:
            if label["required"] and label["kind"] in KINDS and id(label) not in used:
                misses.append(f"  MISSED {label['kind']} {label['at']} {label.get('result', '')}")


def _hits(transcript: Transcript, places: list[str], label: dict[str, Any], finding: Finding) -> bool:
    at = {transcript.same.get(a, a) for a in label["at"]} | set(label["at"])
    if not at & set(places):
        return False
    if label["kind"] == "check" and label.get("result"):
        return finding.detail.endswith(label["result"])
    if label["kind"] == "goal":
        if label.get("carry"):
            return finding.detail == "carried"
        if label["required"]:
            return finding.detail != "carried" and all(_near(r, finding.span) for r in label["reason"][:1])
    return True


def _near(span: dict[str, Any], found: TextSpan) -> bool:
    inside = min(span["end"], found.end) - max(span["start"], found.start)
    return inside >= 0.8 * (span["end"] - span["start"])


def _same(at: str, span: dict[str, Any], found: TextSpan) -> bool:
    inside = min(span["end"], found.end) - max(span["start"], found.start)
    return at == span["at"] and inside >= 0.5 * min(span["end"] - span["start"], found.end - found.start)


def _quote(texts: dict[tuple[int, int], str], span: TextSpan | None) -> str:
    return "" if span is None else texts.get((span.seq, span.block), "")[span.start : span.end][:230]


def _line(texts: dict[tuple[int, int], str], finding: Finding, places: list[str]) -> str:
    return f"{finding.score} {places} {_quote(texts, finding.span)!r} | {_quote(texts, finding.reason)!r}"


def score(
    labels: list[dict[str, Any]], misses: list[str] | None = None, corpus: Path = CORPUS
) -> tuple[dict[str, Tally], Tally]:
    """The tallies by kind with everything shown, and the tally of decisions in the default view."""
    by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        by_key[label["key"]].append(label)
    everything: dict[str, Tally] = defaultdict(Tally)
    default: dict[str, Tally] = defaultdict(Tally)
    for key, of_key in by_key.items():
        transcript = read_transcript(of_key[0]["file"], corpus)
        shown: list[Finding] = []
        hidden: list[Finding] = []
        carry = Carry()
        for turn in transcript.turns:
            found = derive(turn, carry)
            shown += found
            hidden += minor_findings(found, sum(isinstance(b, Did) for b in turn.blocks))
        if misses is not None:
            misses.append(f"## {key}")
        score_file(transcript, shown, of_key, everything, misses)
        score_file(transcript, [f for f in shown if f not in hidden], of_key, default)
    return everything, default["decision"]


def half_of(key: str) -> str:
    """The half that a labelled transcript is in: rules were made with the `read` one, and nobody looked into the
    `unread` one."""
    return "read" if int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2 else "unread"


def main() -> None:
    """`python -m tests.insight.score [LABELS] [dev|test|read|unread] [-v]`"""
    given = sys.argv[1:]
    path = next((Path(a) for a in given if a.endswith(".json")), None)
    half = next((a for a in given if a in ("dev", "test")), None)
    part = next((a for a in given if a in ("read", "unread")), None)
    labels = [label for label in load_labels(path) if half in (None, label.get("half"))]
    labels = [label for label in labels if part in (None, half_of(label["key"]))]
    misses: list[str] = []
    everything, default = score(labels, misses)
    print(*misses if "-v" in given else (), sep="\n")
    for kind in KINDS:
        print(f"{kind:16}", everything[kind])
    print(f"{'default decision':16}", default)


if __name__ == "__main__":
    main()
