"""Figures on real transcripts, held as floors. The transcripts are no part of the project: without them this skips.

The corpus's own labels were read while the rules were made. Those in `labels/`, of other transcripts, were made by two
readers whom the maker of the rules did not talk to: positions and spans only. Those called `held` were labelled after a
version of the rules was frozen, the later ones by the maker himself.
"""

from pathlib import Path

import pytest

import wakelog
from tests.insight.score import Tally, half_of, load_labels, score
from tests.insight.transcripts import CORPUS, read_transcript
from wakelog.importers.transcript_import import import_transcript
from wakelog.insight.blocks import SpokenText
from wakelog.insight.derivation import DEFAULT_SCORE
from wakelog.insight.rules import derive_all

LABELS = Path(__file__).parent / "labels"

pytestmark = pytest.mark.skipif(
    not (CORPUS / "labels" / "labels.json").is_file(),
    reason="no corpus of transcripts: put one beside the repository, or name it in WAKELOG_CORPUS",
)


@pytest.fixture(scope="module")
def tallies() -> tuple[dict[str, Tally], Tally]:
    return score(load_labels())


@pytest.mark.parametrize(
    ("kind", "precision", "recall"),
    [
        ("goal", 0.95, 0.95),
        ("check", 0.95, 0.95),
        ("write", 0.95, 0.95),
        ("decision", 0.45, 0.75),
        ("dead_end", 0.80, 0.80),
        ("approach_change", 0.60, 0.30),
        ("correction", 0.80, 0.80),
    ],
)
def test_precision_and_recall_stay_where_they_were(
    tallies: tuple[dict[str, Tally], Tally], kind: str, precision: float, recall: float
) -> None:
    found = tallies[0][kind]
    assert found.precision >= precision, found
    assert found.recall >= recall, found


def test_the_default_view_of_decisions_is_mostly_right(tallies: tuple[dict[str, Tally], Tally]) -> None:
    default = tallies[1]
    assert default.precision >= 0.70, default
    assert default.recall >= 0.50, default
    assert default.reason_share >= 0.75, default


@pytest.mark.parametrize("reader", ["reader_a", "reader_b"])
def test_on_text_that_the_rules_were_not_made_for_the_figures_are_those_of_the_docs(reader: str) -> None:
    found, default = score(load_labels(LABELS / f"{reader}.json"))
    assert found["check"].precision >= 0.95
    assert found["check"].recall >= 0.90
    assert found["goal"].precision >= 0.90
    assert found["goal"].recall >= 0.85
    assert found["write"].precision >= 0.95
    assert found["write"].recall >= 0.70
    assert default.precision >= 0.70
    assert default.recall >= 0.60
    assert default.reason_share >= 0.75
    assert found["correction"].precision >= 0.80
    assert found["correction"].recall >= 0.75
    assert found["decision"].recall >= 0.75


def test_on_transcripts_labelled_after_the_rules_the_figures_are_those_of_the_docs() -> None:
    found, default = score(load_labels(LABELS / "held.json"))
    assert found["goal"].recall >= 0.90
    assert found["goal"].precision >= 0.95
    assert default.precision >= 0.80
    assert default.recall >= 0.55
    assert default.reason_share >= 0.75
    assert found["decision"].recall >= 0.70
    assert found["correction"].precision >= 0.80


@pytest.mark.parametrize(
    ("labels", "precision", "recall"),
    [
        ("held_7", 0.95, 0.90),
        ("held_8", 0.95, 0.90),
        ("held_9", 0.90, 0.90),
        ("held_10", 0.90, 0.90),
        ("held_11", 0.90, 0.95),
        ("held_12", 0.95, 0.95),
    ],
)
def test_goals_of_dialogues_stay_as_right_as_they_were(labels: str, precision: float, recall: float) -> None:
    """The errors of all of these were read after they were measured."""
    found, _ = score(load_labels(LABELS / f"{labels}.json"))
    assert found["goal"].precision >= precision
    assert found["goal"].recall >= recall


@pytest.mark.parametrize(
    ("labels", "precision", "recall"),
    [
        ("held_7", 0.70, 0.60),
        ("held_8", 0.75, 0.70),
        ("held_9", 0.90, 0.50),
        ("held_11", 0.70, 0.65),
        ("held_12", 0.65, 0.70),
    ],
)
def test_decisions_of_the_default_view_stay_as_right_as_they_were(labels: str, precision: float, recall: float) -> None:
    _, default = score(load_labels(LABELS / f"{labels}.json"))
    assert default.precision >= precision, default
    assert default.recall >= recall, default


_IMPORTED = ("claude-code", "entire-checkpoints", "codex-rollout", "gemini-cli")


def test_an_imported_transcript_gives_the_same_decisions_as_the_labelled_one() -> None:
    """The figures are made with a reader of our own, for the positions of the labels; sessions come from importers.
    It reads no sub-agents that stand between the lines of their parent."""
    more = [label for label in load_labels(LABELS / "reader_a.json") if half_of(label["key"]) == "read"]
    labels = [*load_labels(), *load_labels(LABELS / "fresh.json"), *more]
    files = {label["file"] for label in labels if label["file"].startswith(_IMPORTED)}
    wanted, found = set(), set()
    for file in files:
        transcript = read_transcript(file)
        texts = {(b.seq, b.block): b.text for t in transcript.turns for b in t.blocks if isinstance(b, SpokenText)}
        spans = [f.span for f in derive_all(transcript.turns) if f.kind == "decision" and f.score >= DEFAULT_SCORE]
        wanted |= {(file, texts[(s.seq, s.block)][s.start : s.end]) for s in spans}
        with wakelog.open("memory:") as store:
            import_transcript(store, CORPUS / file)
            heads = {head.session: head for head in store.sessions()}
            for id, head in heads.items():
                session = store.resume(id)
                if session.log.entry(1).body.get("spawner", "").partition("@")[0] in heads:
                    continue
                items = session.insight(f"@1..@{head.turn}", all=True).of("decision")
                found |= {(file, item.quote) for item in items if item.score >= DEFAULT_SCORE}
    assert len(wanted) > 20
    assert len(wanted & found) >= 0.95 * len(wanted | found)
