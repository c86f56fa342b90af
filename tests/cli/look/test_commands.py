"""What each looking command does, beyond how it looks."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.look import world
from wakelog.model import events as ev
from wakelog.state.patch import resolve
from wakelog.store import open as open_store

# status


def test_status_without_a_name_is_about_the_session_last_written_to(look: Cli) -> None:
    assert look("status", "--json").data["name"] == "fix-auth"
    assert look("status", "-s", "-", "--json").data["name"] == world.HOSTILE_NAME


def test_status_can_be_asked_about_the_past(look: Cli) -> None:
    then = look("status", "--at", "fix-auth@2", "--json").data
    assert (then["at"], then["turn"]["number"]) == (24, 2)
    assert then["budget"]["money"]["spent"]["amount"] == "0.100000"
    assert look("status", "fix-auth@2", "--json").data == then


# ls


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("--name", "*-*", "--status", "closed"), {"nightly-report"}),
        (("--status", "paused"), {"deploy-bot"}),
        (("--label", "repo=shop"), {"fix-auth", "try-redis"}),
        (("--label", "team"), {"deploy-bot"}),
        (("--failed",), {world.HOSTILE_NAME}),
        (("--since", "30m"), {"fix-auth"}),
        (("--since", "2031-01-01"), set()),
    ],
)
def test_ls_shows_the_sessions_asked_for(look: Cli, args: tuple[str, ...], names: set[str]) -> None:
    assert {each["name"] for each in look("ls", *args, "--json").data} == names


def test_ls_hides_archived_sessions_until_asked(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for name in ("kept", "put-away"):
            store.session(name).life.end()
        store.resume("put-away").life.archive()
    store_at = ("--store", str(tmp_path), "--json")
    assert [s["name"] for s in cli("ls", *store_at).data] == ["kept"]
    assert {s["name"] for s in cli("ls", "-A", *store_at).data} == {"kept", "put-away"}
    assert [s["name"] for s in cli("ls", "--status", "archived", *store_at).data] == ["put-away"]


def test_ls_puts_forks_below_their_parent_and_marks_them(look: Cli) -> None:
    lines = look("ls").lines
    place = next(i for i, line in enumerate(lines) if line.startswith("fix-auth"))
    assert lines[place + 1].startswith("⑂ try-redis")


# log


def test_log_of_a_point_is_the_history_up_to_it(look: Cli) -> None:
    assert [t["turn"] for t in look("log", "fix-auth@3", "--json").data["turns"]] == [3, 2, 1]


def test_log_range_includes_both_ends(look: Cli) -> None:
    assert [t["turn"] for t in look("log", "fix-auth@2..@4", "--json").data["turns"]] == [4, 3, 2]


def test_log_since_shows_whole_turns(look: Cli) -> None:
    whole = look("log", "fix-auth@4..@4", "--json").data["turns"][0]
    since = look("log", "fix-auth", "--since", "2026-11-15T17:27:40Z", "--until", "2026-11-15T17:30Z", "--json").data
    assert [t["turn"] for t in since["turns"]] == [4]
    assert since["turns"][0]["first"] == whole["first"]


def test_log_marks_turns_that_were_rewound(look: Cli) -> None:
    turns = look("log", "fix-auth", "--json").data["turns"]
    assert [t["turn"] for t in turns if not t["in_view"]] == [5]


def test_log_before_the_rewind_shows_the_turn_in_view(look: Cli) -> None:
    turns = look("log", "--at", "fix-auth@5", "--json").data["turns"]
    assert all(t["in_view"] for t in turns)


def test_log_of_kind_or_tool_lists_events(look: Cli) -> None:
    events = look("log", "fix-auth", "--tool", "run_sql", "--json").data["events"]
    assert [e["seq"] for e in events] == [60, 59, 58, 45, 44, 43]
    back = look("log", "fix-auth", "--tool", "run_sql", "--json", "--reverse").data["events"]
    assert [e["seq"] for e in back] == [43, 44, 45, 58, 59, 60]
    kinds = look("log", "fix-auth", "--kind", "decision", "--kind", "fact.recorded", "--json").data["events"]
    assert [e["kind"] for e in kinds] == ["decision.made", "decision.made", "fact.recorded"]


def test_log_of_events_goes_on_at_next(look: Cli) -> None:
    first = look("log", "fix-auth", "--events", "-n", "80", "--json").json
    rest = look("log", "-s", "fix-auth", first["next"], "--events", "--json").json
    assert [e["seq"] for e in rest["data"]["events"]] == [3, 2, 1]
    assert rest["next"] is None


def test_log_of_an_open_turn_says_that_it_is_open(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.session("busy").append(ev.TurnStarted(input="work"))
    result = cli("log", "--store", str(tmp_path))
    assert "◐  work" in result.out
    assert "open" in result.lines[1]


def test_log_of_a_turn_without_input_shows_what_was_decided_or_done(cli: Cli, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        session = store.session("alone")
        with session.turn():
            session.decide("a walk", because="the sun is out")
        with session.turn():
            session.append(ev.ActionRecorded(action="a", tool="feed_cat"))
    out = cli("log", "--store", str(tmp_path)).out
    assert "chose a walk because the sun is out" in out
    assert "feed_cat" in out


# show


def test_show_of_an_event_has_the_whole_commit_record(look: Cli) -> None:
    [event] = look("show", "-s", "fix-auth", "e38", "--json", "--max-bytes", "0").data["events"]
    assert event["tool"] == "web_fetch"
    assert event["cause"] == 36
    assert (event["trust"], event["source"]) == ("untrusted", "web")
    assert event["body"]["output"] == "To change a column, make it nullable first. " * 400
    requested = look("show", "-s", "fix-auth", "e36", "--json").data["events"][0]
    assert len(requested["input_hash"]) == 64


def test_show_tells_how_to_get_the_rest_of_a_payload(look: Cli) -> None:
    short = look("show", "-s", "fix-auth", "e38").out
    assert "wakelog show -s fix-auth e38 --max-bytes 0" in short
    whole = look("show", "-s", "fix-auth", "e38", "--max-bytes", "0").out
    assert "--max-bytes 0" not in whole
    assert whole.count("nullable") >= 400


def test_show_takes_what_search_prints(look: Cli) -> None:
    line = next(line for line in look("search", "nullable", "--kind", "decision").lines if line.startswith("fix-auth"))
    place = line.split("  ")[0].split()
    shown = look("show", *place, "--json").data
    assert (shown["kind"], shown["first"]) == ("event", 57)
    assert shown["events"][0]["kind"] == "decision.made"


def test_show_of_a_commit_names_its_place_in_the_chain(look: Cli) -> None:
    event = look("show", "-s", "fix-auth", "e64", "--json").data
    shown = look("show", "-s", "fix-auth", f"c:{event['commit']['hash'][:10]}", "--json").data
    assert shown["kind"] == "commit"
    assert (shown["first"], shown["last"]) == (63, 64)
    assert shown["commit"] == event["commit"]


def test_show_raw_gives_stored_bytes_that_verify(look: Cli) -> None:
    import hashlib

    header, body = look("show", "-s", "fix-auth", "e57", "--raw").lines
    assert json.loads(header)["kind"] == "decision.made"
    assert json.loads(body)["choice"] == "run_sql"
    before = look("show", "-s", "fix-auth", "e56", "--json").data["events"][0]["hash"]
    after = look("show", "-s", "fix-auth", "e57", "--json").data["events"][0]["hash"]
    assert hashlib.sha256(bytes.fromhex(before) + header.encode()).hexdigest() == after


def test_show_of_several_places_shows_each(look: Cli) -> None:
    shown = look("show", "fix-auth@1", "@2", "--json").data
    assert [each["turn"]["turn"] for each in shown] == [1, 2]


# state, diff, blame


def test_state_is_the_state_at_any_point(look: Cli) -> None:
    assert look("state", "/data/risk", "--at", "fix-auth@3", "--json").data["value"] == 0.2
    assert look("state", "/data/risk", "-s", "fix-auth", "--json").data["value"] == 0.6
    assert look("state", "/data/plan/1/status", "--at", "fix-auth@5", "--json").data["value"] == "doing"


def test_state_and_blame_leave_out_what_an_adapter_keeps_for_itself(cli: Cli, tmp_path: Path) -> None:
    place = str(tmp_path / "adapted")
    with open_store(place) as store:
        store.session("thread", data={"plan": [1], "$graph": {"versions": {"a": 7}}})
    for args in (("state",), ("state", "/data")):
        shown = cli(*args, "-s", "thread", "--store", place).out
        assert "plan" in shown
        assert "versions" not in shown
        assert "wakelog state '/data/$graph' -s thread" in shown
    assert "$graph" not in cli("blame", "/data", "-s", "thread", "--store", place).out
    assert "versions" in cli("state", "/data/$graph", "-s", "thread", "--store", place).out
    assert "$graph" in cli("blame", "/data/$graph", "-s", "thread", "--store", place).out
    told = cli("state", "/data", "-s", "thread", "--store", place, "--json").data["value"]
    assert told["$graph"] == {"versions": {"a": 7}}


def test_state_schema_is_a_json_schema_that_names_every_part(look: Cli) -> None:
    schema = json.loads(look("state", "--schema").out)
    state = look("state", "-s", "fix-auth", "--json").data["value"]
    assert {*state, "goal_from"} == set(schema["$defs"]["State"]["properties"])


def test_diff_patch_turns_one_state_into_the_other(look: Cli) -> None:
    patch = json.loads(look("diff", "fix-auth@2", "fix-auth@4", "--patch").out)
    before = look("state", "--at", "fix-auth@2", "--json").data["value"]
    after = look("state", "--at", "fix-auth@4", "--json").data["value"]
    assert resolve(before, patch)[0] == after
    assert look("diff", "fix-auth@2..@4", "--json").data["patch"] == patch


def test_diff_exit_code_says_whether_something_differs(look: Cli) -> None:
    assert look("diff", "fix-auth@3", "fix-auth@4", "--exit-code").code == 1
    assert look("diff", "fix-auth@3", "fix-auth@3", "--exit-code").code == 0
    assert look("diff", "fix-auth@3", "fix-auth@4", "/facts", "--exit-code").code == 0
    assert look("diff", "fix-auth@3", "fix-auth@4").code == 0


def test_diff_of_a_turn_is_what_its_last_attempt_changed(look: Cli) -> None:
    data = look("diff", "fix-auth@4", "--json").data
    assert (data["a"]["seq"], data["b"]["seq"]) == (47, 64)
    assert data["decisions"] == [
        "chose run_sql instead of ask_user because the article says the column must be nullable"
    ]


def test_diff_of_one_attempt_is_what_it_changed(look: Cli) -> None:
    data = look("diff", "fix-auth@4.1", "--json").data
    assert (data["a"]["seq"], data["b"]["seq"]) == (33, 46)


def test_diff_of_a_checkpoint_is_what_changed_since(look: Cli) -> None:
    data = look("diff", "-s", "fix-auth", "cp:before-fix", "--json").data
    assert (data["a"]["seq"], data["b"]["seq"]) == (24, 83)


def test_diff_of_the_beginning_is_everything(look: Cli) -> None:
    data = look("diff", "fix-auth@0", "--json").data
    assert data["a"]["seq"] == 0
    assert {"goal", "data", "facts"} <= {c["part"] for c in data["changes"]}


def test_diff_of_two_sessions_compares_their_heads(look: Cli) -> None:
    data = look("diff", "fix-auth", "try-redis", "--json").data
    assert [data[side]["name"] for side in "ab"] == ["fix-auth", "try-redis"]


def test_each_change_names_event_tool_turn_and_reason(look: Cli) -> None:
    changes = {c["pointer"]: c for c in look("diff", "fix-auth@4", "--json").data["changes"]}
    writer = changes["/files_modified/db~10042_sessions.sql"]["writer"]
    assert (writer["seq"], writer["turn"], writer["attempt"], writer["why"]) == (61, 4, 2, "the migration itself")
    assert changes["/trust/web"]["writer"]["tool"] == "web_fetch"


def test_blame_names_the_event_that_last_wrote_each_key(look: Cli) -> None:
    keys = {k["pointer"]: k["writer"] for k in look("blame", "/data", "-s", "fix-auth", "--json").data["keys"]}
    assert (keys["/data/plan"]["seq"], keys["/data/risk"]["seq"]) == (81, 63)
    then = look("blame", "/data/risk", "--at", "fix-auth@3", "--json").data["keys"]
    assert then[0]["writer"]["seq"] == 1


# search, query


def test_search_finds_nothing_with_exit_code_one(look: Cli) -> None:
    for flags in ((), ("--json",), ("--ndjson",), ("-l",), ("-c",)):
        assert look("search", "no-such-word-anywhere", *flags).code == 1


def test_search_in_one_session_finds_only_there(look: Cli) -> None:
    everywhere = {hit["name"] for hit in look("search", "redis", "--json").data["hits"]}
    assert "try-redis" in everywhere
    assert look("search", "redis", "-s", "nightly-report").code == 1
    assert look("search", "redis", "-s", "nightly-report", "--all").code == 0


def test_search_lists_sessions_and_counts(look: Cli) -> None:
    assert "fix-auth" in look("search", "nullable", "-l").lines
    [line] = look("search", "nullable", "-c").lines
    assert line.split()[1] == "fix-auth"
    hits = look("search", "nullable", "--json").data["hits"]
    assert int(line.split()[0]) == len(hits) == 3


def test_query_answers_rows_and_says_when_there_are_more(look: Cli) -> None:
    data = look("query", "select name from sessions where name glob 'fix*'", "--json").data
    assert data == {"columns": ["name"], "rows": [["fix-auth"]], "truncated": False}
    result = look("query", "select seq from events", "-n", "3", "--json")
    assert len(result.data["rows"]) == 3
    assert result.data["truncated"]
    assert "only the first 3 rows" in result.err


def test_query_without_rows_says_so(look: Cli) -> None:
    assert look("query", "select name from sessions where false").out == "no rows\n"


def test_query_can_change_nothing(look: Cli) -> None:
    for statement in ("delete from sessions", "drop view sessions", "attach 'x' as x", "select * from wl_session"):
        assert look("query", statement).code in (2, 6)


def test_query_names_the_views_and_their_columns(look: Cli) -> None:
    views = {each["view"]: each["columns"] for each in look("query", "--views", "--json").data}
    assert {"sessions", "turns", "events", "files", "decisions"} <= views.keys()
    assert "usd_micros" in views["turns"]


# ps


def test_ps_puts_those_that_need_somebody_first(look: Cli) -> None:
    needs = [each["needs"][0] for each in look("ps", "--json").data]
    assert needs == sorted(needs, key=("waiting", "uncertain", "stuck", "paused", "running", "idle").index)
    assert [e["name"] for e in look("ps", "--stuck", "--json").data] == ["deploy-bot"]


def test_ps_calls_a_silent_turn_stuck_unless_its_writer_is_alive(cli: Cli, tmp_path: Path) -> None:
    clock = world.Clock()
    with open_store(tmp_path, clock=clock) as store:
        session = store.session("busy")
        session.append(ev.TurnStarted(input="work"))
        session.life.take_lease("worker-1", ttl_s=900)
    store_at = ("--store", str(tmp_path), "--json")
    assert cli("ps", *store_at, now=clock.now).data[0]["needs"] == ["running"]
    alive = cli("ps", *store_at, now=clock.now + 600_000_000).data[0]
    assert (alive["needs"], alive["holder"]) == (["running"], "worker-1")
    dead = cli("ps", *store_at, now=clock.now + 1000_000_000).data[0]
    assert (dead["needs"], dead["holder"]) == (["stuck", "running"], None)


def test_ps_drops_idle_sessions_after_an_hour(look: Cli) -> None:
    shown = {each["name"] for each in look("ps", "--json").data}
    everything = {each["name"] for each in look("ps", "--all", "--json").data}
    assert "hello" not in shown
    assert "hello" in everything
    assert "nightly-report" not in everything


# Any store


def test_looking_changes_nothing_in_the_log(look: Cli, demo: Path) -> None:
    before = (demo / "log.db").read_bytes()
    for args in (("status",), ("log", "fix-auth", "-p"), ("ls",), ("search", "x"), ("ps",)):
        look(*args)
    assert (demo / "log.db").read_bytes() == before


def test_erased_events_say_so_everywhere(cli: Cli, tmp_path: Path) -> None:
    from wakelog.log.removal import erase

    with open_store(tmp_path) as store:
        session = store.session("private")
        with session.turn(user="my secret"):
            session.fact("secret", "hunter2", why="told me hunter2")
            session.message("assistant", "your secret is hunter2")
        erase(session.log, [2, 3, 4, 5])
    for args in (
        ("log",),
        ("show",),
        ("state",),
        ("diff",),
        ("blame",),
        ("tail",),
        ("log", "--events"),
        ("show", "e4"),
    ):
        for flag in ((), ("--json",)):
            result = cli(*args, *flag, "--store", str(tmp_path))
            assert result.code == 0, (args, result.err)
            assert "hunter2" not in result.out
    assert "erased" in cli("show", "e4", "--store", str(tmp_path)).out


def test_help_of_every_command_says_what_it_does(cli: Cli) -> None:
    for name in ("status", "ls", "log", "show", "state", "diff", "blame", "search", "query", "tail", "ps"):
        result = cli(name, "--help")
        assert result.code == 0
        assert f"Usage: wakelog {name}" in result.out


def test_commands_load_nothing_they_do_not_need() -> None:
    import subprocess

    code = (
        "import sys; from wakelog.cli.app import run; run(['log', '--help']);"
        " print('wakelog.index.index' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert done.stdout.splitlines()[-1] == "False"
