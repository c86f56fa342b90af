"""Routes answer what the library answers; and what programs need too: pages, ETags, repetition."""

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import wakelog
from tests.http.asking import Asker, Reply
from tests.http.conftest import Serve
from wakelog import events as ev
from wakelog.cli.demo import build
from wakelog.http.routes import all_routes
from wakelog.http.server import RunningServer
from wakelog.session import Session
from wakelog.session.budget import Monitors, SessionBudget
from wakelog.session.calls import SessionCalls
from wakelog.session.context import SessionContext
from wakelog.session.files import Files
from wakelog.session.history import SessionHistory
from wakelog.session.life import SessionLife
from wakelog.session.trust import SessionTrust
from wakelog.store import Store
from wakelog.testing.builders import new_session

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
BIG = "a payload is what does not fit into a body " * 30

# Verbs without a route, and why.
RECORDING = "recording is appending events, which one route does for all kinds"
IN_PROCESS = "about the code that runs in this process, or files on its machine"
PART = "a part of what another route answers"
NOT_YET = "the server does not offer this look yet; the library and the command line do"
PLUMBING = "a building block without an answer of its own"
NOT_ROUTED = {
    **dict.fromkeys(
        ("files.commits", "files.link_commits"), "they read a git repository, which is where the agent ran"
    ),
    **dict.fromkeys(("artefact", "dead_end", "decide", "fact", "label", "message", "retract", "set_goal"), RECORDING),
    **dict.fromkeys(("calls.returned", "calls.spawned", "context.touch", "files.record"), RECORDING),
    **dict.fromkeys(("aio", "budget.limit", "call", "calls.bind", "calls.workflow", "model", "tool"), IN_PROCESS),
    **dict.fromkeys(
        ("files.capture", "files.plan", "files.plan_diff", "files.restore", "monitors.add", "monitors.guards"),
        IN_PROCESS,
    ),
    **dict.fromkeys(
        ("history.bisect", "history.start_bisect", "history.end_bisect", "files.checkout", "files.worktree"), IN_PROCESS
    ),
    **dict.fromkeys(("attempts", "files.link_commits", "history.recording", "replay", "run_turn", "turn"), IN_PROCESS),
    **dict.fromkeys(("seq", "store", "id", "status"), PLUMBING),
    **dict.fromkeys(("data", "context.replaced", "budget.spent", "budget.left", "calls.pending"), PART),
    **dict.fromkeys(("history.commit", "files.change", "files.commits", "history.tool_of", "history.name_of"), PART),
    **dict.fromkeys(("context.seen", "history.preview_adopt"), NOT_YET),
}
ROUTED_AS = {
    "budget.set": "set_budget",
    "calls.table": "calls",
    "context.window": "context",
    "life.end": "close",
    "export_bundle": "bundle",
    "files.diff": "file_diff",
    "history.preview_rewind": "preview",
    "files.modified": "changed_files",
    "follow": "tail",
    "life.unpause": "resume",
}
SPACES = {
    "calls": SessionCalls,
    "context": SessionContext,
    "files": Files,
    "budget": SessionBudget,
    "monitors": Monitors,
    "trust": SessionTrust,
    "life": SessionLife,
    "history": SessionHistory,
}


@pytest.fixture
def asker(running: RunningServer) -> Asker:
    return Asker(running.url, running.key)


@pytest.fixture
def store(running: RunningServer) -> Iterator[Store]:
    with wakelog.open(running.url, key=running.key) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session[Any]:
    session = store.session("s", goal="find out", data={"n": 0})
    with session.turn(user="go"):
        session.decide("look", because="nobody knows", alternatives=["wait"])
        session.fact("k", "v", source="web:x", trust="untrusted")
    with session.turn(user=BIG):
        session.patch([{"op": "replace", "path": "/data/n", "value": 1}], why="counted")
    return session


def test_every_verb_of_a_session_has_a_route_or_a_reason() -> None:
    routes = {route.name for route in all_routes()}
    verbs = {name for name in dir(Session) if not name.startswith("_")} - set(SPACES)
    for space, cls in SPACES.items():
        verbs |= {f"{space}.{name}" for name in dir(cls) if not name.startswith("_")}
    missing = {v for v in verbs if ROUTED_AS.get(v, v.rpartition(".")[2]) not in routes} - set(NOT_ROUTED)
    assert not missing, f"give these a route, or say in NOT_ROUTED why they have none: {sorted(missing)}"
    assert not set(NOT_ROUTED) - verbs, "no longer verbs"


def test_reading_answers_what_the_library_does(asker: Asker, session: Session[Any]) -> None:
    def told(path: str, **query: Any) -> Any:
        reply = asker.get(f"/v1/sessions/s{path}", **query)
        assert reply.status == 200, reply.content
        return reply.json

    def plain(value: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(value))

    assert told("/state")["value"] == session.log.state()
    assert told("/state", at="@1", pointer="/data") == {
        "session": session.id,
        "at": session.seq("@1"),
        "state_hash": session.log.state_hash(session.seq("@1")),
        "value": {"n": 0},
    }
    assert told("/state", at="@0")["value"] == {}
    assert told("/diff", a="@1", b="@2") == plain(session.diff("@1", "@2"))
    assert told("/blame", pointer="/data")["keys"] == plain(session.history.blame("/data"))
    assert told("/files", last=0) == plain(session.files.modified(0))
    assert told("/messages")["messages"] == plain(session.messages())
    assert told("/messages")["messages"][-1]["content"] == BIG
    assert told("/attempts", turn=1)["attempts"] == plain(session.history.attempts(1))
    assert told("/verify") == plain(session.verify())
    assert told("/anchor") == plain(session.anchor())
    assert told("/why", what="/facts/k") == plain(session.why("/facts/k"))
    assert told("/brief") == plain(session.brief())
    assert told("/head")["hash"] == session.head.hash.hex()
    assert told("")["goal"] == "find out"
    assert told("/events/last-user")["body"]["content"] == BIG
    assert told("/events/e1")["kind"] == "session.opened"


def test_events_come_in_pages_that_meet(asker: Asker, session: Session[Any]) -> None:
    for n in range(25):
        session.fact("n", n)
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = asker.get("/v1/sessions/s/events", after=after, limit=7).json
        seen += [event["seq"] for event in page["events"]]
        after = page["next"]
    assert seen == list(range(1, session.head.seq + 1))
    facts = asker.get("/v1/sessions/s/events", kind=["fact"], turn=1).json["events"]
    assert [event["body"]["key"] for event in facts] == ["k"]
    assert facts[0]["trust"] == "untrusted"
    turn = asker.get("/v1/sessions/s/events", place="@1").json["events"]
    assert {event["turn"] for event in turn} == {1}


def test_sessions_and_hits_come_in_pages_that_meet(asker: Asker, store: Store) -> None:
    names = {f"n{i:02}" for i in range(23)}
    for name in names:
        store.session(name)
    seen: list[str] = []
    after = ""
    while True:
        page = asker.get("/v1/sessions", after=after, limit=5).json
        seen += [row["name"] for row in page["rows"]]
        after = page["next"]
        if not after:
            break
    assert len(seen) == 23
    assert set(seen) == names
    assert [r["name"] for r in asker.get("/v1/sessions", name="n0[1-3]").json["rows"]]


NEED_A_QUERY = ("attempts", "picture", "preview", "why")


def test_an_answer_the_caller_has_is_not_sent_again(asker: Asker, session: Session[Any]) -> None:
    paths = [
        route.full_path.replace("{session}", "s")
        for route in all_routes()
        if route.by_head and route.names == ("session",) and route.name not in NEED_A_QUERY
    ]
    assert len(paths) > 12
    for path in paths:
        first = asker.get(path)
        assert first.status == 200, (path, first.content)
        again = asker.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status, again.content) == (304, b"")
        listed = asker.get(path, headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
        assert listed.status == 304
    session.fact("more", 1)
    for path in paths:
        assert asker.get(path, headers={"If-None-Match": first.headers["etag"]}).status == 200


def test_an_answer_about_a_time_ago_or_another_session_has_no_tag(asker: Asker, session: Session[Any]) -> None:
    assert "etag" not in asker.get("/v1/sessions/s/state", at="t:1s").headers
    assert "etag" not in asker.get("/v1/sessions/s/events", since="1h").headers
    assert "etag" not in asker.get("/v1/sessions/s/diff", other="s").headers
    json, packed = (asker.get("/v1/sessions/s/head", headers={"Accept": a}) for a in ("*/*", "application/msgpack"))
    assert json.headers["etag"] != packed.headers["etag"]


def test_a_repeated_append_gives_the_first_answer_and_stores_nothing(asker: Asker, session: Session[Any]) -> None:
    body = {"events": [{"kind": "note.added", "body": {"text": "once"}}], "commit_id": "mine"}
    first = asker.post("/v1/sessions/s/events", body)
    session.fact("meanwhile", 1)
    assert asker.post("/v1/sessions/s/events", body).json["seq"] == first.json["seq"]
    other = {**body, "events": [{"kind": "note.added", "body": {"text": "twice"}}]}
    assert asker.post("/v1/sessions/s/events", other).kind == "commit-id-reused"
    assert sum(e.kind == "note.added" for e in session.events()) == 1


def test_an_append_on_a_head_that_moved_is_a_conflict_that_says_where_it_is(
    asker: Asker, session: Session[Any]
) -> None:
    seen = session.head.seq
    session.fact("first", 1)
    body = {"events": [{"kind": "note.added", "body": {"text": "late"}}], "expect": seen}
    reply = asker.post("/v1/sessions/s/events", body)
    assert (reply.status, reply.kind, reply.json["head_seq"]) == (409, "head-moved", seen + 1)
    assert reply.json["retryable"]
    assert asker.post("/v1/sessions/s/events", {**body, "expect": seen + 1}).status == 200


def test_an_illegal_move_names_the_legal_ones(asker: Asker, session: Session[Any]) -> None:
    session.life.pause()
    reply = asker.post("/v1/sessions/s/events", {"events": [{"kind": "goal.set", "body": {"goal": "x"}}]})
    assert (reply.status, reply.kind) == (409, "session-paused")
    assert "session.resumed" in reply.json["legal"]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"kind": "no.such"}, "unknown-kind"),
        ({"kind": "note.added"}, "bad-event"),
        ({"kind": "note.added", "body": {"text": "x", "typo": 1}}, "bad-event"),
        ({"kind": "note.added", "body": {"text": 3}}, "bad-event"),
        ({"kind": "session.deleted"}, "own-kind"),
        ({"kind": "history.rewound", "body": {"to": 1}}, "own-kind"),
        ({"kind": "fact.recorded", "body": {"key": "k", "value": 2**60}}, "not-a-value"),
        ({"kind": "fact.recorded", "body": {"key": "k", "value": {"$erased": 1}}}, "reserved-key"),
        ({"kind": "note.added", "body": {"text": "x"}, "cause": 99}, "bad-draft"),
        ({"kind": "message.added", "body": {"role": "user", "content": {"$base64": "!"}}}, "bad-event"),
        ({"kind": "x.own", "body": {"delta": []}}, "unknown-kind"),
    ],
)
def test_an_event_that_does_not_fit_is_refused_and_nothing_is_stored(
    event: dict[str, Any], kind: str, asker: Asker, session: Session[Any]
) -> None:
    before = session.head
    fine = {"kind": "note.added", "body": {"text": "fine"}}
    assert asker.post("/v1/sessions/s/events", {"events": [fine, event]}).kind == kind
    assert session.head == before


def test_secrets_are_taken_out_of_what_is_appended(asker: Asker, session: Session[Any], running: RunningServer) -> None:
    body = {"events": [{"kind": "note.added", "body": {"text": f"it is {SECRET}"}}]}
    reply = asker.post("/v1/sessions/s/events", body)
    assert reply.status == 200
    told = asker.get("/v1/sessions/s/events", after=reply.json["seq"] - 2).content
    assert b"[redacted:github-token]" in told
    assert SECRET.encode() not in told


def test_a_library_that_does_not_redact_cannot_store_a_secret_through_a_server(running: RunningServer) -> None:
    with wakelog.open(running.url, key=running.key, redact=None) as careless:
        session = careless.session("s")
        with pytest.raises(wakelog.NotAllowedError) as refused:
            session.fact("token", SECRET)
        assert refused.value.kind == "secret-found"
        session.fact("harmless", 1)  # the session goes on


def test_payloads_are_mentioned_fetched_in_place_or_as_bytes(asker: Asker, session: Session[Any]) -> None:
    content = b"\x00\xffbytes" * 200
    event = {
        "kind": "message.added",
        "body": {"role": "user", "content": {"$base64": base64.b64encode(content).decode()}},
    }
    seq = asker.post("/v1/sessions/s/events", {"events": [event]}).json["seq"]
    mention = asker.get("/v1/sessions/s/events", after=seq - 1).json["events"][0]["body"]["content"]
    assert mention["size"] == len(content)
    assert asker.get(f"/v1/sessions/s/payloads/{seq}/{mention['$payload']}").content == content
    whole = asker.get(f"/v1/sessions/s/events/e{seq}").json["body"]["content"]
    assert base64.b64decode(whole["$base64"]) == content
    assert asker.get(f"/v1/sessions/s/payloads/1/{mention['$payload']}").status == 404
    assert asker.get(f"/v1/sessions/s/payloads/{seq}/zz").kind == "bad-request"


def test_a_bundle_goes_out_and_comes_in_elsewhere(serve: Serve, session: Session[Any], asker: Asker) -> None:
    bundle = asker.get("/v1/sessions/s/bundle")
    assert bundle.headers["content-type"] == "application/x-ndjson"
    elsewhere = serve("memory:", rate=0)
    other = Asker(elsewhere.url, elsewhere.key)
    for _ in range(2):
        reply = other.post("/v1/bundles", bundle.content)
        assert (reply.status, reply.json["session"], reply.json["name"]) == (201, session.id, "s")
    assert other.get("/v1/sessions/s/head").json["hash"] == session.head.hash.hex()
    assert other.post("/v1/bundles", bundle.content[:-10]).kind == "bad-bundle"
    broken = bundle.content.replace(b"find out", b"find OUT")
    assert other.post("/v1/bundles", broken).kind == "bad-bundle"
    with wakelog.open(elsewhere.url + "/ns/third", key=elsewhere.key) as third:
        import io

        from wakelog.log.bundle import import_bundle

        assert import_bundle(third.engine, io.BytesIO(bundle.content)).head().seq == session.head.seq


def test_verifying_against_an_anchor_finds_a_history_that_was_cut_off(asker: Asker, session: Session[Any]) -> None:
    anchor = asker.get("/v1/sessions/s/anchor").json
    good = asker.post("/v1/sessions/s/verify", {"seq": anchor["seq"], "hash": anchor["hash"]}).json
    assert good["anchored"]
    assert good["integrity"] == good["completeness"] == []
    cut = asker.post("/v1/sessions/s/verify", {"seq": anchor["seq"] + 5, "hash": anchor["hash"]}).json
    assert "cut off" in cut["completeness"][0]["what"]
    wrong = asker.post("/v1/sessions/s/verify", {"seq": anchor["seq"], "hash": "00" * 32}).json
    assert "rewritten" in wrong["integrity"][0]["what"]


def test_a_lease_shuts_out_whoever_had_it_before(asker: Asker, session: Session[Any]) -> None:
    first = asker.post("/v1/sessions/s/lease", {"holder": "one"}).json["epoch"]
    assert asker.post("/v1/sessions/s/lease", {"holder": "two"}).kind == "leased"
    second = asker.post("/v1/sessions/s/lease", {"holder": "two", "force": True}).json["epoch"]
    note = {"events": [{"kind": "note.added", "body": {"text": "x"}}]}
    assert asker.post("/v1/sessions/s/events", {**note, "guard": first}).kind == "fenced"
    assert asker.post("/v1/sessions/s/events", {**note, "guard": second}).status == 200
    assert asker.get("/v1/sessions/s").json["holder"] == "two"


def test_undo_over_http_leaves_the_servers_files_alone(asker: Asker, session: Session[Any]) -> None:
    asker.post("/v1/sessions/s/rewind", {"to": "@1"})
    assert asker.get("/v1/sessions/s/state", pointer="/data/n").json["value"] == 0
    assert asker.post("/v1/sessions/s/undo").json["operation"]
    assert asker.get("/v1/sessions/s/state", pointer="/data/n").json["value"] == 1
    assert asker.post("/v1/sessions/s/redo").status == 200


def test_messagepack_says_the_same_as_json(asker: Asker, session: Session[Any]) -> None:
    for path in ("/v1/sessions/s/head", "/v1/sessions/s/events", "/v1/sessions/s/diff", "/v1/sessions"):
        packed = asker.get(path, headers={"Accept": "application/msgpack"})
        assert packed.headers["content-type"] == "application/msgpack"
        assert msgspec.msgpack.decode(packed.content) == asker.get(path).json
    body = msgspec.msgpack.encode({"name": "packed"})
    assert asker.post("/v1/sessions", body, **{"Content-Type": "application/msgpack"}).json["name"] == "packed"


def test_it_is_ready_until_its_store_cannot_be_read(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(running.url)
    assert asker.get("/healthz").json == asker.get("/readyz").json == {"status": "ok"}
    engine = running.server.spaces.get("default").engine

    def broken(**_: Any) -> None:
        raise wakelog.UnavailableError("the disk at /very/private is gone")

    monkeypatch.setattr(engine, "sessions", broken)
    reply = asker.get("/readyz")
    assert (reply.status, reply.kind) == (503, "store-unreadable")
    assert b"private" not in reply.content
    assert asker.get("/healthz").status == 200


def test_metrics_count_without_naming_anybody(asker: Asker, session: Session[Any]) -> None:
    asker.get("/v1/sessions/s/head")
    text = asker.get("/metrics").content.decode()
    assert 'wakelog_http_requests_total{method="GET",route="/v1/sessions/{session}/head",status="200"} 1.0' in text
    commits = next(line for line in text.splitlines() if line.startswith("wakelog_commits_total"))
    assert float(commits.split()[1]) >= 5
    assert session.id not in text
    assert "default" not in text


def test_metrics_say_how_the_sessions_of_all_namespaces_stand(running: RunningServer) -> None:
    for name in ("team-a", "team-b"):
        with wakelog.open(f"{running.url}/ns/{name}", key=running.key) as store:
            session = store.session("s")
            session.append(ev.ActionRequested(action="a", tool="send", approval=True))
            session.monitors.flag("odd", "look", severity="error")
    text = Asker(running.url, running.key).get("/metrics").content.decode()
    told = dict(
        line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(("wakelog_sessions", "wakelog_flags"))
    )
    assert (told['wakelog_sessions{needs="waiting"}'], told['wakelog_flags{severity="error"}']) == ("2.0", "2.0"), told
    assert "team-" not in text


@pytest.mark.parametrize("field", ["prev", "hash", "first", "session", "records"])
def test_surgery_by_a_commit_that_is_made_up_is_refused(field: str, running: RunningServer) -> None:
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        session = store.session("s")
        [first] = store.engine.read(session.id)
    real = msgspec.json.decode(msgspec.json.encode(first))
    other = new_session()
    lies = {"prev": "", "hash": "", "first": 2, "session": other, "records": []}
    for session_id in (session.id, other):
        commit = {**real, "session": session_id, field: lies[field]}
        surgeries = [([commit], []), ([real], [commit]), ([], [commit])]
        for commits, rewritten in surgeries:
            surgery = {"commits": commits, "rewritten": rewritten, "stale_from": {}, "pruned_to": {other: 1}}
            reply = asker.post("/v1/engine/operate", {"surgery": surgery})
            assert reply.status in (400, 404, 409), reply.content
    with wakelog.open(running.url, key=running.key) as store:
        assert [head.session for head in store.sessions()] == [session.id]


def test_a_sign_of_life_with_another_epoch_or_holder_is_refused(running: RunningServer) -> None:
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        session = store.session("s")
        assert _beat(asker, session.id, 0, "me").kind == "fenced"
        session.log.take_lease("me")
        session.log.take_lease("you", force=True)
        for epoch, holder in ((1, "me"), (3, "me"), (2, "me"), (0, "")):
            reply = _beat(asker, session.id, epoch, holder)
            assert (reply.status, reply.kind) == (409, "fenced")
        assert session.log.living_holder() == "you"
        assert _beat(asker, session.id, 2, "you").status == 200


def _beat(asker: Asker, session: str, epoch: int, holder: str) -> Reply:
    beat = {"epoch": epoch, "holder": holder, "until": 1}
    return asker.post("/v1/engine/beat", {"session": session, "beat": beat})


def test_the_diff_of_two_runs_has_the_first_call_that_differs(asker: Asker, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    for session, number in ((one, 1), (two, 2)):
        with session.turn("look"):
            session.append(ev.ActionRecorded(action="1", tool="look", effect="read", input=number, output="ok"))
    told = asker.get("/v1/sessions/one/diff", other="two").json["first_call"]
    assert told["a"] == {"seq": 4, "turn": 1, "tool": "look", "said": "look", "by": "user"}
    assert told == msgspec.to_builtins(one.diff(other=two).first_call)


def test_sides_of_a_comparison_may_be_in_different_sessions(asker: Asker, store: Store, session: Session[Any]) -> None:
    fork = session.fork("@1", name="fork")
    with fork.turn(user="otherwise"):
        fork.decide("wait")
    plain = msgspec.json.decode(msgspec.json.encode(session.history.compare((session, "@2"), (fork, "@2"))))
    assert asker.get("/v1/compare", side=["s@2", "fork@2"]).json == plain
    assert asker.get("/v1/compare", side=["fork"]).json["pairs"][0]["divergence"], "a fork, against its parent"
    three = asker.get("/v1/compare", side=["s@1", "@2", "fork@2"]).json
    assert [course["name"] for course in three["courses"]] == ["s@1", "s@2", "fork@2"]
    assert asker.get("/v1/compare").kind == asker.get("/v1/compare", side=["@1", "@2"]).kind == "nothing-to-compare"


def test_where_a_store_is_kept_is_told_to_those_who_see_all_of_it(serve: Serve) -> None:
    from wakelog.http.keys import make_key

    running = serve(rate=0)
    Asker(running.url, running.key).post("/v1/sessions", {"name": "s"})
    key, token = make_key("few", "admin", ("default",), now=running.server.clock())
    running.server.keys.add(key)
    assert Asker(running.url, running.key).get("/v1/store").json["path"]
    told = Asker(running.url, token).get("/v1/store")
    assert told.status == 200
    assert told.json["path"] is None
    assert told.json["sessions"] == 1


def test_of_a_damaged_session_events_are_told_around_the_damage(serve: Serve) -> None:
    running = serve()
    behind = running.server.spaces.get("default").store
    build("tampered", behind.engine)
    asker = Asker(running.url, running.key)
    assert asker.get("/v1/sessions/tampered/events").kind == "corrupt-log"
    whole = asker.get("/v1/sessions/tampered/events", even_damaged="true").json
    seqs = [each["seq"] for each in whole["events"]]
    assert [(each["first"], each["last"]) for each in whole["holes"]] == [(13, 13)]
    assert "altered" in whole["holes"][0]["why"]
    assert seqs == [seq for seq in range(1, 27) if seq != 13]
    first = asker.get("/v1/sessions/tampered/events", even_damaged="true", limit=12).json
    assert (first["next"], first["holes"]) == (12, [])
    rest = asker.get("/v1/sessions/tampered/events", even_damaged="true", after=12).json
    assert [each["seq"] for each in rest["events"]] == list(range(14, 27))
    assert rest["holes"] == whole["holes"]
