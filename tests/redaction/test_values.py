"""Secrets inside events: every text and value is searched, ids are not, and a clean event is the same object."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.redaction.corpus import make
from wakelog.codec.records import check_event
from wakelog.model import events as ev
from wakelog.model.events import KINDS
from wakelog.model.payloads import Payload
from wakelog.redaction import Redactor, redact_event
from wakelog.redaction.assignments import is_named_secret, may_name_secret
from wakelog.testing.strategies import values

GITHUB = make("gh§p_{b62:36}", 1)
OPENAI = make("sk§-proj-{b64u:60}", 2)
MARK = "[redacted:github-token]"
# Hypothesis has found out which keys say "secret". With one pattern, any other value is ordinary.
ONE = Redactor().only("github-token")


def _message(content: Any) -> ev.MessageAdded:
    return ev.MessageAdded(role="tool", content=content)


def _content(event: ev.Event) -> Any:
    assert isinstance(event, ev.MessageAdded)
    return event.content


def test_an_event_without_a_secret_is_the_same_object() -> None:
    event = ev.ActionRequested(action="a1", tool="shell", input={"cmd": "ls -l", "n": [1, None, 2.5]}, why="to look")
    assert redact_event(event) == (event, ())
    assert redact_event(event)[0] is event


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (ev.GoalSet(goal=f"use {GITHUB}"), "goal"),
        (ev.GoalSet(goal="x", why=f"he said {GITHUB}"), "why"),
        (ev.MessageAdded(role="user", content=f"use {GITHUB}"), "content"),
        (ev.DecisionMade(choice="x", alternatives=("a", f"use {GITHUB}")), "alternatives"),
        (ev.LabelsSet(labels={"a": None, "b": GITHUB}), "labels"),
        (ev.ActionFailed(action="a", error=ev.Failure(type="http", message=f"401 for {GITHUB}")), "error"),
        (ev.ActionSucceeded(action="a", output_summary=f"cloned with {GITHUB}"), "output_summary"),
        (ev.FileChanged(path=".env", after=f"GH={GITHUB}"), "after"),
        (ev.ResourceTouched(resource=f"https://x:{GITHUB}@github.com/a"), "resource"),
        (ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": [GITHUB]}]), "patch"),
        (ev.Foreign(foreign_kind="x.note", data={"key": GITHUB, "deep": {"er": (GITHUB,)}}), "data"),
        (ev.NoteAdded(text=GITHUB), "text"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_field_that_holds_text_is_looked_at(event: ev.Event, field: str) -> None:
    redacted, names = redact_event(event)
    assert set(names) == {"github-token"}
    assert type(redacted) is type(event)
    assert GITHUB not in repr(redacted)
    assert MARK in repr(getattr(redacted, field))
    assert redact_event(redacted) == (redacted, ())
    check_event(redacted)


def test_names_come_in_order_one_for_each_marker() -> None:
    event = _message([f"{GITHUB} and {OPENAI}", {"again": GITHUB}])
    assert redact_event(event)[1] == ("github-token", "openai-key", "github-token")


def test_the_given_values_are_not_changed() -> None:
    value = {"a": [1, {"b": GITHUB}], "same": ["x"]}
    before = json.dumps(value)
    redacted, _ = redact_event(_message(value))
    assert json.dumps(value) == before
    assert _content(redacted) == {"a": [1, {"b": MARK}], "same": ["x"]}
    assert _content(redacted)["same"] is value["same"]


@pytest.mark.parametrize("value", ["hunter22", "correcthorse", "9aK!27xQ", "7391046285"])
def test_a_password_is_known_by_its_key(value: str) -> None:
    redacted, names = redact_event(_message({"user": "alice", "password": value}))
    assert _content(redacted) == {"user": "alice", "password": "[redacted:named-secret]"}
    assert names == ("named-secret",)
    assert redact_event(redacted)[0] is redacted


@pytest.mark.parametrize(
    "key", ["api_key", "apiKey", "X-Api-Key", "client_secret", "accessToken", "DB_PASSWORD", "Authorization"]
)
def test_keys_of_many_spellings_say_secret(key: str) -> None:
    assert redact_event(_message({key: "q7w8e9r0t1y2u3"}))[1] == ("named-secret",)
    assert redact_event(_message([{"deep": {key: ["q7w8e9r0t1y2u3"]}}]))[1] == ("named-secret",)


@pytest.mark.parametrize(
    "value",
    [
        {"password": "short"},
        {"password": "changeme"},
        {"password": "${DB_PASSWORD}"},
        {"password": "<password>"},
        {"password": "must have at least 12 characters"},
        {"password": None, "token": 12345678, "secret": True},
        {"token_type": "bearer", "max_tokens": "q7w8e9r0t1y2u3"},
        {"next_page_token": "q7w8e9r0t1y2u3", "cache_key": "q7w8e9r0t1y2u3"},
        {"api_key": "required", "token": "identifier"},
        {"q7w8e9r0t1y2u3": "password"},
    ],
)
def test_placeholders_and_other_keys_say_nothing(value: dict[str, Any]) -> None:
    event = _message(value)
    assert redact_event(event)[0] is event


def test_a_value_that_shows_its_kind_goes_by_that() -> None:
    assert _content(redact_event(_message({"token": GITHUB}))[0]) == {"token": MARK}


def test_a_fact_goes_by_its_key_and_a_patch_by_its_path() -> None:
    fact, names = redact_event(ev.FactRecorded(key="db_password", value="correcthorse"))
    assert (fact, names) == (ev.FactRecorded(key="db_password", value="[redacted:named-secret]"), ("named-secret",))
    patch = ev.StatePatched(patch=[{"op": "add", "path": "/data/db/password", "value": "correcthorse"}])
    redacted, names = redact_event(patch)
    assert names == ("named-secret",)
    assert redacted == ev.StatePatched(
        patch=[{"op": "add", "path": "/data/db/password", "value": "[redacted:named-secret]"}]
    )


def test_keys_of_dicts_stay_as_they_are() -> None:
    event = _message({GITHUB: 1})
    assert redact_event(event)[0] is event


def test_ids_and_hashes_stay_as_they_are() -> None:
    event = ev.ActionRequested(action=GITHUB, tool="t", input_hash=GITHUB, key=GITHUB, context_hash=GITHUB)
    assert redact_event(event)[0] is event
    within = ev.ActionRequested(action="a", tool="t", inside=GITHUB, group=GITHUB)
    assert redact_event(within)[0] is within  # they name other actions, whose ids stay as they are
    forked = ev.SessionForked(parent=GITHUB, at=1, hash=GITHUB)
    assert redact_event(forked)[0] is forked


def test_copies_of_what_is_stored_already_stay_as_they_are() -> None:
    pruned = ev.RangePruned(upto=3, last_hash="h", base={"facts": {"k": GITHUB}})
    assert redact_event(pruned)[0] is pruned


def test_payloads_of_text_and_json_are_made_again() -> None:
    text, names = redact_event(_message(Payload(f"use {GITHUB}".encode(), "text")))
    assert (_content(text).content, _content(text).media) == (f"use {MARK}".encode(), "text")
    assert _content(text).digest == Payload(f"use {MARK}".encode()).digest
    assert names == ("github-token",)
    data = json.dumps({"a": GITHUB, "password": "correcthorse", "n": 1}).encode()
    redacted, names = redact_event(_message(Payload(data, "json")))
    assert json.loads(_content(redacted).content) == {"a": MARK, "password": "[redacted:named-secret]", "n": 1}
    assert names == ("github-token", "named-secret")


@pytest.mark.parametrize("wrap", [bytes, Payload])
def test_bytes_are_looked_into_when_they_are_text_and_not_too_big(wrap: Any) -> None:
    secret = f"use {GITHUB} ".encode()
    redacted, names = redact_event(_message(wrap(secret)))
    assert names == ("github-token",)
    assert type(_content(redacted)) is wrap
    for untouched in (b"\xff\xfe" + secret, secret + b" " * (1 << 20)):
        event = _message(wrap(untouched))
        assert redact_event(event)[0] is event


def test_json_that_is_none_or_too_deep_is_read_as_text() -> None:
    broken = b'{"a": "' + GITHUB.encode()
    assert redact_event(_message(Payload(broken, "json")))[1] == ("github-token",)
    deep = b"[" * 200 + b'"' + GITHUB.encode() + b'", {"password": "9aK!27xQ"}' + b"]" * 200
    redacted, names = redact_event(_message(Payload(deep, "json")))
    assert names == ("github-token", "password")
    json.loads(_content(redacted).content)


def test_a_value_that_holds_itself_is_left_to_the_codec() -> None:
    loop: list[Any] = [GITHUB]
    loop += [loop, loop]
    event = _message(loop)
    assert redact_event(event)[0] is event
    with pytest.raises(ValueError, match="nested deeper"):
        check_event(event)


def test_keys_that_are_no_text_are_left_to_the_codec() -> None:
    event = _message({1: "an ordinary text", None: {(): "another"}})
    assert redact_event(event)[0] is event
    with pytest.raises(ValueError, match="is not a str"):
        check_event(event)


def test_named_secrets_can_be_switched_off() -> None:
    event = _message({"password": "correcthorse"})
    assert Redactor().without("named-secret").redact_event(event)[0] is event


@given(values)
def test_any_value_without_a_secret_is_the_same_object(value: Any) -> None:
    event = _message(value)
    redacted, names = ONE.redact_event(event)
    assert names == ()
    assert redacted is event


@given(values, values)
def test_a_secret_is_found_beside_any_value(one: Any, other: Any) -> None:
    redacted, names = ONE.redact_event(_message([one, {"x": [other, f"see {GITHUB}."]}]))
    assert _content(redacted) == [one, {"x": [other, f"see {MARK}."]}]
    assert names == ("github-token",)


def test_every_kind_of_event_can_be_redacted() -> None:
    for cls in KINDS.values():
        required: dict[str, Any] = {field.name: "x" for field in msgspec.structs.fields(cls) if field.required}
        event = cls(**required, why=f"because of {GITHUB}")
        assert redact_event(event)[0] == msgspec.structs.replace(event, why=f"because of {MARK}")


@pytest.mark.parametrize("key", ["auth", "_auth"])
def test_text_in_any_script_under_a_key_for_logins_is_no_error(key: str) -> None:
    event = _message({key: "über zwanzig Zeichen lang"})
    assert redact_event(event) == (event, ())


@pytest.mark.parametrize("key", ["Cookie", "set-cookie"])
def test_a_header_in_structured_data_is_known_by_its_key(key: str) -> None:
    session = make("sessionid={hex:32}; Path=/", 3)
    headers = {"Accept": "*/*", key: session, "also": {key: ["theme=dark; Path=/", session]}}
    redacted, names = redact_event(_message({"headers": headers}))
    assert names == ("named-secret", "named-secret")
    kept = _content(redacted)["headers"]
    assert kept["also"][key] == ["theme=dark; Path=/", "[redacted:named-secret]"]
    assert session not in str(kept)


@given(st.text(max_size=12), st.text(max_size=40))
@example("password", "hunter22hunter")
@example("Set-Cookie", "sessionid=8f3aC09dE1bB7a6F5e4D3c2B1a09f8e7")
@example("_auth", "dXNlcjpodW50ZXIyMmh1bnRlcg==")
def test_a_key_that_is_passed_over_never_names_a_secret(key: str, value: str) -> None:
    assert may_name_secret(key) or not is_named_secret(key, value)
