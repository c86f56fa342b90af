"""For any texts and calls: the rules never fail, and every span quotes existing words."""

from hypothesis import given
from hypothesis import strategies as st

from tests.insight.turns import Scene
from wakelog.insight.blocks import Did, SpokenText
from wakelog.insight.rules import Carry, derive

_CUES = st.sampled_from(
    [
        "I'll use ",
        "instead of ",
        "because ",
        "so that ",
        ". ",
        "\n",
        "```",
        "- ",
        "| ",
        "# ",
        "that didn't work",
        "`a.py`",
        "?",
    ]
)
_TEXT = st.lists(st.one_of(_CUES, st.text(max_size=12)), max_size=30).map("".join)
_LINE = st.lists(
    st.one_of(
        st.sampled_from(["pytest ", "cat <<E\n", "E\n", "> ", "| ", "&& ", "sed -i ", "'", '"', "$("]),
        st.text(max_size=8),
    ),
    max_size=15,
).map("".join)
_STEP = st.tuples(st.sampled_from(["user", "says", "thinks", "runs", "fails", "edits"]), _TEXT, _LINE)


@given(st.lists(_STEP, max_size=12))
def test_every_span_is_inside_a_text_of_the_turn(steps: list[tuple[str, str, str]]) -> None:
    scene = Scene()
    for kind, text, line in steps:
        if kind in ("user", "says", "thinks"):
            getattr(scene, kind)(text)
        elif kind == "edits":
            scene.edits(line or "a", fails=text == "")
        else:
            scene.runs(line, text, fails=kind == "fails")
    turn = scene.done()
    texts = {b.seq: b.text for b in turn.blocks if isinstance(b, SpokenText)}
    calls = {b.seq for b in turn.blocks if isinstance(b, Did)}
    earlier = Scene(0).user("make it fast").edits()
    texts |= {b.seq: b.text for b in earlier.blocks if isinstance(b, SpokenText)}
    calls |= {b.seq for b in earlier.blocks if isinstance(b, Did)}
    carry = Carry()
    derive(earlier.done(), carry)
    for finding in derive(turn, carry):
        assert set(finding.calls) <= calls
        for span in (finding.span, finding.reason):
            if span is not None and span.start != span.end:
                words = texts[span.seq][span.start : span.end]
                assert len(words) == span.end - span.start
                assert words == words.strip()
