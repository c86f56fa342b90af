"""Figures on real transcripts, held as floors. The transcripts are no part of the project: without them this skips.

The labels were read while the rules were made, so these are not figures of unseen text; those are in
docs/explanation/insight.md.
"""

import pytest

from tests.insight.score import Tally, load_labels, score
from tests.insight.transcripts import CORPUS

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
