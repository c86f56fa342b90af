"""The audit report: who approved what, what untrusted input led to, what was removed, and that others can check it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wakelog
from wakelog import events as ev
from wakelog.cli.demo import build
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.evidence.signed_note import PrivateKey
from wakelog.exporters.audit_page import audit_html, audit_markdown
from wakelog.maintenance.audit_report import (
    NEVER_PROVEN,
    AuditCase,
    AuditReport,
    SessionAudit,
    audit_report,
    read_case,
    write_bundles,
)
from wakelog.maintenance.holds import place_hold
from wakelog.session import Session
from wakelog.store import Store

READER = Path(__file__).parents[1] / "readers" / "reader.py"
HOSTILE = "\x1b]0;x\x07 <script>alert(1)</script> | `rm` \u202e [a](http://x)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with wakelog.open(tmp_path / "store") as store:
        yield store


def _one(store: Store, name: str = "s", **how: Any) -> SessionAudit:
    return audit_report(store, AuditCase((name,)), **how).sessions[0]


def test_effects_are_told_with_who_approved_them(store: Store) -> None:
    session = store.session("s", folder="")
    with session.turn(user="pay"):
        for action, by in (("a", "Ada"), ("b", "")):
            session.append(ev.ActionRequested(action=action, tool="wire", input={"path": action}, approval=True))
            session.calls.approve(action, by=by)
            session.append(ev.ActionStarted(action=action), ev.ActionSucceeded(action=action))
        session.append(ev.ActionRecorded(action="c", tool="look", effect="read"))
        session.append(ev.ActionRecorded(action="d", tool="edit", effect="write"))
    found = _one(store)
    assert [(e.tool, e.about, e.approved_by) for e in found.effects] == [
        ("wire", "a", "Ada"),
        ("wire", "b", "user"),
        ("edit", "", ""),
    ]
    assert found.calls == 4
    assert [(t.turn, t.input, t.outcome) for t in found.turns] == [(1, "pay", "completed")]


def test_the_page_begins_with_what_counts_and_never_calls_a_denial_an_approval(store: Store) -> None:
    session = store.session("mails")
    for action, answer in (("a", ev.ActionApproved), ("b", ev.ActionDenied)):
        session.append(ev.ActionRequested(action=action, tool="send", effect="external", approval=True))
        session.append(answer(action=action, by="ada"))
    session.append(ev.ActionSucceeded(action="a"))
    page = "".join(audit_markdown(audit_report(store, AuditCase(("mails",)))))
    assert page.index("2 effects: 1 approved, 1 denied, 0 without an approval") < page.index("What happened")
    assert page.index("was checked against an anchor") < page.index("What happened")
    assert "| succeeded | approved by ada |" in page
    assert "| denied | denied by ada |" in page


def test_untrusted_input_is_followed_to_its_effects(store: Store) -> None:
    build("injection", store.engine)
    found = _one(store, "injection")
    (influence,) = found.influences
    assert (influence.tool, influence.outcome, influence.trust) == ("send_email", "denied", "untrusted")
    assert influence.source_name == "web:blog.example"
    assert influence.path[0] == influence.source
    assert influence.path[-1] == influence.effect
    assert influence.known == "recorded"


def test_what_was_removed_is_told_with_who_and_why(store: Store) -> None:
    session = store.session("s", folder="")
    seq = session.fact("name", "Bo")
    store.erase(session, [seq], by="dpo", why="asked to")
    place_hold(session, "case 7")
    found = _one(store)
    removal = next(e for e in found.record if e.concern == "removal")
    assert (removal.by, removal.why, removal.events) == ("dpo", "asked to", (seq,))
    assert found.hold is not None
    assert any("1 erased once said" in each for each in found.unproven)
    assert "Bo" not in "".join(audit_html(audit_report(store, AuditCase(("s",)))))


def test_gaps_and_open_calls_are_told(store: Store) -> None:
    session = store.session("s", folder="")
    session.append(ev.GapNoted(source="proxy", missed="two calls"))
    session.append(ev.ActionRequested(action="a", tool="wire"), ev.ActionStarted(action="a"))
    found = _one(store)
    assert found.gaps == ("two calls", "e3 wire: its outcome is not known (running)")


def test_anchors_are_held_against_the_sessions(store: Store, tmp_path: Path) -> None:
    key = PrivateKey.new("audit.example")
    session = store.session("s", folder="")
    log = store.anchors.log(str(tmp_path / "anchors"), [key.public], create=True)
    store.anchors.add(log, key)
    session.note("after the anchor")
    store.session("new", folder="")
    report = audit_report(store, AuditCase(("s", "new")), log=log, kept=[log.rounds[0].note])
    anchored, not_anchored = report.sessions
    assert report.ok
    assert anchored.anchored is not None
    assert anchored.anchored.verdict == "holds"
    assert anchored.unproven == ("That events after e1 are the first ones: they came after the newest anchor.",)
    assert "not in the log of anchors" in not_anchored.unproven[0]
    assert "agrees with the receipt" in "".join(audit_markdown(report))


def test_a_report_of_a_damaged_session_says_so(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "damaged") as store:
        build("tampered", store.engine)
        report = audit_report(store, AuditCase(("tampered",)))
        found = report.sessions[0]
        assert not report.ok
        assert found.integrity.integrity
        page = "".join(audit_html(report))
        assert "A CHECK FAILED" in page
        assert "INTEGRITY FAILS" in page


def test_a_report_of_a_damaged_session_lists_what_can_be_read_and_never_says_none(tmp_path: Path) -> None:
    """The demo approves three refunds. The body of e13, which asked for the second, was altered."""
    with wakelog.open(tmp_path / "damaged") as store:
        build("tampered", store.engine)
        [found] = audit_report(store, AuditCase(("tampered",))).sessions
        assert found.unread == ("e13",)
        assert [(c.seq, c.tool, c.outcome) for c in found.effects] == [
            (5, "refund", "succeeded"),
            (21, "refund", "succeeded"),
        ]
        assert (found.status, found.record[-1].kind) == ("closed", "session.closed")
        assert found.last_at == store.resume("tampered", even_damaged=True).log.entry(26).header.at
        page = "".join(audit_markdown(audit_report(store, AuditCase(("tampered",)))))
        assert "IT IS DAMAGED: e13 cannot be read." in page
        assert "| 2 turns or more | 2 effects or more: " in page
        assert "\nNone.\n" not in page
        assert "None in what can be read." in page


def test_a_case_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text('title = "Incident 42"\nquestion = "Who paid?"\nby = "Ada"\nsessions = ["a", "b"]\n')
    assert read_case(path) == AuditCase(("a", "b"), "Incident 42", "Who paid?", "Ada")


@pytest.mark.parametrize("text", ["", "sessions = 3", 'sessions = ["a"]\nwrong = 1', "sessions = [", "\xff"])
def test_a_file_that_is_no_case_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInputError, match="is not a case"):
        read_case(path)


def test_a_case_names_sessions_that_there_are(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_case(tmp_path / "none.toml")
    with pytest.raises(InvalidInputError, match="needs a session"):
        audit_report(store, AuditCase(()))
    with pytest.raises(NotFoundError, match="no session 'nobody'"):
        audit_report(store, AuditCase(("nobody",)))


# The pages


@pytest.fixture
def hostile(store: Store) -> AuditReport:
    session = store.session("s", folder="", goal=HOSTILE, agent=HOSTILE)
    with session.turn(user=HOSTILE):
        session.append(ev.ActionRecorded(action="a", tool=HOSTILE, input={"path": HOSTILE}))
    return audit_report(store, AuditCase(("s",), HOSTILE, HOSTILE, HOSTILE))


def test_recorded_text_does_nothing_in_a_browser(hostile: AuditReport) -> None:
    page = "".join(audit_html(hostile))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "⟦U+202E⟧" in page
    assert "default-src 'none'" in page
    assert "src=" not in page.replace("default-src", "").replace("style-src", "")


def test_recorded_text_does_nothing_in_markdown(hostile: AuditReport) -> None:
    text = "".join(audit_markdown(hostile))
    assert "<script" not in text.replace("\\<script", "")
    assert "\x1b" not in text
    assert "](http" not in text.replace("\\](http", "")
    widths = {line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| @1")}
    assert widths == {7}


def test_both_pages_say_what_is_not_proven(store: Store) -> None:
    store.session("s", folder="")
    report = audit_report(store, AuditCase(("s",)))
    for page in ("".join(audit_html(report)).replace("&#x27;", "'"), "".join(audit_markdown(report))):
        for sentence in NEVER_PROVEN:
            assert sentence[:40] in page


# The bundle


def _read(path: Path, anchor: Any) -> Any:
    told = {"session": anchor["session"], "seq": anchor["seq"], "hash": anchor["hash"]}
    command = [sys.executable, "-I", str(READER), str(path), "--anchor", json.dumps(told)]
    done = subprocess.run(command, capture_output=True, timeout=120)
    return json.loads(done.stdout)


def test_a_bundle_is_verified_by_a_reader_that_is_not_ours(store: Store, tmp_path: Path) -> None:
    session = store.session("s", folder="")
    with session.turn(user="go"):
        seq = session.fact("k", "v")
    fork = session.fork(name="f")
    fork.note("on the side")
    store.erase(session, [seq], why="private")
    folder = tmp_path / "evidence"
    report = write_bundles(store, audit_report(store, AuditCase(("s", "f"))), folder)
    anchors = json.loads((folder / "anchors.json").read_text())
    assert [each.bundle and each.bundle.name for each in report.sessions] == [
        f"{a['session']}.wakelog" for a in anchors
    ]
    for anchor in anchors:
        path = folder / f"{anchor['session']}.wakelog"
        answer = _read(path, anchor)
        assert answer["ok"], answer
        assert not _read(path, {**anchor, "hash": "0" * 64})["ok"]
    assert report.sessions[0].bundle is not None
    assert report.sessions[0].bundle.sha256 in "".join(audit_html(report))
    assert msgspec.json.decode(msgspec.json.encode(report), type=AuditReport) == report


def test_a_folder_that_holds_something_is_left_alone(store: Store, tmp_path: Path) -> None:
    store.session("s", folder="")
    report = audit_report(store, AuditCase(("s",)))
    (tmp_path / "mine").write_text("x")
    with pytest.raises(NotAllowedError, match="not empty"):
        write_bundles(store, report, tmp_path)
    with pytest.raises(NotAllowedError, match="cannot be written"):
        write_bundles(store, report, tmp_path / "mine")


def test_a_damaged_session_has_no_bundle_and_that_is_a_gap(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "damaged") as store:
        build("tampered", store.engine)
        report = write_bundles(store, audit_report(store, AuditCase(("tampered",))), tmp_path / "evidence")
    assert report.sessions[0].bundle is None
    assert "it has no bundle" in report.sessions[0].gaps[-1]


def test_a_session_is_read_only(store: Store) -> None:
    session: Session[Any] = store.session("s", folder="")
    before = session.head
    audit_report(store, AuditCase(("s",)))
    assert session.head == before
