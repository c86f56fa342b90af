"""The append door: secrets are replaced before anything is sealed, and kinds of our own are refused."""

import pytest

import wakelog
from wakelog import NotAllowedError, events

# Put together here, so that scanners of this repository find nothing.
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def test_a_secret_is_replaced_whoever_appends_and_an_event_says_what_kind_it_was() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        session.fact("token", f"use {TOKEN} please")
        session.append(events.MessageAdded(role="user", content=f"{'x' * 600} {TOKEN}"))
        everything = [(e.kind, e.record.body) for e in session.log.entries()]
        payloads = [p for c in store.engine.read(session.id, payloads=True) for _, p in c.payloads]
        assert all(TOKEN.encode() not in data for data in [*(body for _, body in everything), *payloads])
        assert [kind for kind, _ in everything].count("payload.redacted") == 2
        marker = session.log.entry(3)
        assert marker.body["target"] == 2
        assert marker.body["markers"]
        assert session.verify().ok


def test_a_repeated_append_under_one_id_is_stored_once_although_it_was_redacted() -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        first = session.append(events.FactRecorded(key="k", value=TOKEN), commit_id="once")
        session.fact("other", 1)
        assert session.append(events.FactRecorded(key="k", value=TOKEN), commit_id="once") == first


def test_redaction_can_be_switched_off() -> None:
    with wakelog.open("memory:", redact=None) as store:
        session = store.session("s")
        session.fact("token", TOKEN)
        assert session.state().facts["token"].value == TOKEN


@pytest.mark.parametrize(
    "event",
    [
        events.SessionDeleted(),
        events.HistoryRewound(to=1),
        events.RangePruned(upto=1, last_hash="", base={}),
        events.PayloadErased(erased=()),
        events.SessionForked(parent="s", at=1, hash=""),
        events.PayloadRedacted(target=1),
    ],
)
def test_kinds_that_speak_about_stored_bytes_are_written_by_the_log_alone(event: events.Event) -> None:
    with wakelog.open("memory:") as store:
        log = store.log("s")
        with pytest.raises(NotAllowedError) as caught:
            log.append(event)
        assert caught.value.kind == "own-kind"
        assert log.head().seq == 1
