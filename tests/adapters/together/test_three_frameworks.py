"""Three frameworks do the same task in one store, and are held against each other: the example, and its picture."""

import runpy
from pathlib import Path
from xml.sax.saxutils import escape

import wakelog
from tests.docs.pages import ROOT

NAMES = ("by-langgraph", "by-pydantic-ai", "by-openai-agents")


def test_what_differs_first_is_what_one_of_them_did(tmp_path: Path) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "three_frameworks.py"))
    with wakelog.open(tmp_path) as store:
        for name in ("with_langgraph", "with_pydantic_ai", "with_openai_agents"):
            example[name](store)
        first, same, other = (store.resume(name) for name in NAMES)
        assert first.history.compare(same).divergence is None
        (found,) = first.history.compare(other).pairs
        assert found.divergence is not None
        assert found.divergence.what == ("output",)
        call = found.first_call
        assert call is not None
        assert call.a.step is not None
        assert call.b.step is not None
        assert [found.a.steps[call.a.step].name, found.b.steps[call.b.step].name] == ["ask_approval", "refund"]
        context = next(factor for factor in found.divergence.behind if factor.what == "context")
        assert [item.content for item in context.held_back_b] == [example["RULE"]]
        assert call.b.said == "It cost 35 euros and came late, so I refund it."


def test_the_picture_shows_what_the_example_prints() -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    drawn = (ROOT / "docs" / "pictures" / "three-frameworks.svg").read_text("utf-8")
    assert [line for line in pictures["record_comparison"]() if escape(line) not in drawn] == []
