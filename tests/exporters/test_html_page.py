"""The page: whole, inert, and with everything on it that was said and changed."""

import re
from html.parser import HTMLParser
from pathlib import Path

import wakelog
from tests.exporters.test_claude_code_file import import_one
from tests.exporters.transcripts import till
from wakelog import ModelMessage, UserMessage, events
from wakelog.exporters.html_page import html_page
from wakelog.session import Session


def page_of(session: Session) -> str:
    return "".join(html_page(session, session.log.entries()))


class Seen(HTMLParser):
    """Which tags and attributes a page has, and whether each is closed."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [str(value) for name, value in attrs if name == "id"]
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def seen_in(page: str) -> Seen:
    seen = Seen()
    seen.feed(page)
    assert seen.open == []
    return seen


def test_the_page_is_whole_has_no_script_and_loads_nothing(tmp_path: Path) -> None:
    seen = seen_in(page_of(import_one(till(), tmp_path)))
    assert not seen.tags & {"script", "img", "link", "iframe", "object", "form", "b-shown"}
    assert all(link.startswith("#") for link in seen.links)
    assert len(seen.ids) == len(set(seen.ids))


def test_recorded_text_is_escaped_wherever_it_stands() -> None:
    hidden = "\u202e\u180e\ufff9\u3164\U000e0041"
    hostile = f"</pre></details><script>alert(1)</script>{hidden}"
    session = wakelog.open("memory:").session("own", goal=hostile, labels={"note": hostile})

    @session.tool(name="run")
    def run(command: str) -> str:
        return command

    with session.turn(hostile):
        run(hostile)
        session.append(ModelMessage(hostile), UserMessage(hostile))
    page = page_of(session)
    seen = seen_in(page)
    assert "script" not in seen.tags
    assert "&lt;script&gt;" in page
    assert not set(hidden) & set(page)


def test_a_folded_text_is_named_by_its_beginning_without_marks_of_weight() -> None:
    session = wakelog.open("memory:").session("own")
    with session.turn("look"):
        thoughts = [{"type": "thinking", "thinking": f"**Looking around**\n\n{'far ' * 60}"}]
        answer = {"role": "assistant", "type": "message", "content": thoughts}
        session.append(events.ActionRecorded(action="1", tool="model", effect="model", output=answer))
    assert re.search(r"<summary><b>thinking</b> Looking around far [far ]+ …", page_of(session))


def test_a_derived_decision_that_is_its_own_reason_is_quoted_once() -> None:
    session = wakelog.open("memory:").session("own")
    choice = "I'll stream the body instead of buffering it, so that memory stays flat."
    with session.turn("it is slow"):
        session.append(ModelMessage(f"Found the bug. {choice}"))
        session.append(events.ActionRecorded(action="1", tool="Edit", effect="write", input={"file_path": "a.py"}))
    page = page_of(session)
    [item] = re.findall(r"<li><b>~ decision</b>.*?</li>", page)
    assert item.count("so that memory stays flat") == 1


def test_prompts_answers_thinking_and_diffs_are_on_it_and_what_is_long_is_folded(tmp_path: Path) -> None:
    page = page_of(import_one(till(), tmp_path))
    assert "/review 12" in page
    assert "rounded &amp; &lt;b&gt;shown&lt;/b&gt;" in page
    assert re.search(r"<details class=\"aside\"[^>]*><summary><b>thinking</b> Where is &lt;total&gt;\?", page)
    assert "<ins>+    return round(sum(items), 2)</ins>" in page
    assert "<del>-    return sum(items)</del>" in page
    assert re.search(r"<details id=\"e\d+\" class=\"bad\"><summary><b>Bash</b> <code>pytest -q</code>", page)


def test_what_was_derived_is_marked_as_such(tmp_path: Path) -> None:
    lines = till()
    lines[-1]["message"]["content"] = [
        {"type": "text", "text": "I decided to use integers for the tax because floats lose cents."}
    ]
    session = import_one(lines, tmp_path)
    found = [i for turn in (1, 2) for i in session.insight(f"@{turn}").items if i.kind == "decision"]
    page = page_of(session)
    assert page.count("<b>~ decision</b>") == len(found)


def test_a_turns_input_is_told_once() -> None:
    session = wakelog.open("memory:").session("own")
    with session.turn("only once please"):
        pass
    assert page_of(session).count("only once please") == 1


def test_light_and_dark_follow_the_readers_system(tmp_path: Path) -> None:
    assert "prefers-color-scheme:dark" in page_of(import_one(till(), tmp_path))


def test_turns_are_listed_calls_are_one_row_and_words_are_set() -> None:
    session = wakelog.open("memory:").session("own")

    @session.tool(name="run")
    def run(command: str) -> str:
        return "two\nlines"

    with session.turn("first things first"):
        run("make")
        session.append(ModelMessage("# Plan\n- one `word`\n\n```\n<b>code</b>\n```"))
    with session.turn("then the rest"):
        pass
    page = page_of(session)
    assert re.findall(r'<li><a href="#(t\d-1)"><b>(@\d)</b> ([^<]+)', page) == [
        ("t1-1", "@1", "first things first"),
        ("t2-1", "@2", "then the rest"),
    ]
    assert page.count("<b>run</b>") == 1
    assert "<small>2 lines</small>" in page
    assert '<p class="heading">Plan</p>' in page
    assert "• one <code>word</code>" in page
    assert '<pre class="code">&lt;b&gt;code&lt;/b&gt;</pre>' in page
    seen_in(page)
