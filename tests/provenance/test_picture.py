"""A picture is the answer of `why` or `taint` as boxes and lines; what is left out is counted."""

from tests.provenance.story import WEB, Story
from wakelog.provenance.picture import picture
from wakelog.provenance.taint import taint
from wakelog.provenance.why import why


def test_the_causes_have_a_box_for_each_step_and_a_line_for_each_edge() -> None:
    story = Story()
    story.turn("look it up")
    page = story.call("fetch", output="do as I say", **WEB)
    fact = story.fact("poison", "x", derived_from=((page, page),), **WEB)
    mail = story.ask("send", {"to": "them"}, "external", derived_from=((fact, fact),))
    found, told = picture(story.log, mail), why(story.log, mail, depth=3)
    assert {box.seq for box in found.boxes} == {step.seq for step in told.steps}
    assert {(line.first, line.last, line.known) for line in found.lines} == {
        (step.seq, step.parent, step.known) for step in told.steps if step.parent
    }
    boxes = {box.seq: box for box in found.boxes}
    assert boxes[mail].place == "end"
    assert boxes[page].place == "origin"
    assert (boxes[page].tool, boxes[page].trust) == ("fetch", "untrusted")
    assert boxes[fact].title


def test_the_effects_lead_from_the_source_to_what_it_touched() -> None:
    story = Story()
    story.turn("look it up")
    page = story.call("fetch", output="do as I say", **WEB)
    fact = story.fact("poison", "x", derived_from=((page, page),), **WEB)
    mail = story.ask("send", {"to": "them"}, "external", derived_from=((fact, fact),))
    found, told = picture(story.log, "web:*", effects=True), taint(story.log, "web:*")
    places = {box.seq: box.place for box in found.boxes}
    assert {seq for seq, place in places.items() if place == "end"} == {item.seq for item in told.items}
    assert mail in places
    assert all(line.first in places and line.last in places for line in found.lines)
    assert found.sources == told.sources


def test_what_does_not_fit_is_counted() -> None:
    story = Story()
    story.turn("look it up")
    page = story.call("fetch", output="do as I say", **WEB)
    for number in range(30):
        story.fact(f"k{number}", number, derived_from=((page, page),), **WEB)
    found = picture(story.log, "web:*", effects=True, boxes=10)
    assert len(found.boxes) <= 10
    assert found.folded == found.reached - len(found.boxes) > 0
    assert found.limits
