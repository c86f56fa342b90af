"""What is masked before sharing: in every format, whatever was cut, and said in the review."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.exporters.test_claude_code_file import import_one
from tests.exporters.transcripts import till
from wakelog.errors import InvalidInputError
from wakelog.exporters.share_mask import ShareMask
from wakelog.session import Session

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def learned(session: Session, *words: str) -> ShareMask:
    mask = ShareMask(words)
    mask.learn(session.log, session.log.entries)
    return mask


def test_home_folders_keep_their_place_and_lose_their_name(tmp_path: Path) -> None:
    mask = learned(import_one(till(), tmp_path))
    assert mask.text("cd /home/mira/code && ls") == "cd /home/[redacted:user]/code && ls"
    assert mask.text("C:\\Users\\Mira Z\\x") == "C:\\Users\\[redacted:user] Z\\x"


def test_a_name_known_by_a_home_folder_is_masked_in_other_paths_and_not_in_words(tmp_path: Path) -> None:
    mask = learned(import_one(till(), tmp_path))
    assert mask.text("mira/rounding") == "[redacted:user]/rounding"
    assert mask.text("-home-mira-work") == "-home-[redacted:user]-work"
    assert mask.text("admirable miracles") == "admirable miracles"


def test_folders_of_nobody_stay() -> None:
    assert ShareMask().text("/home/runner/code /Users/Shared/x") == "/home/runner/code /Users/Shared/x"


def test_own_words_are_masked_in_any_case_but_not_inside_others() -> None:
    mask = ShareMask(["Till", "/srv/acme"])
    assert mask.text("TILL, until, /srv/acme/x") == "[redacted:own-word], until, [redacted:own-word]/x"


def test_a_word_that_is_everywhere_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="too short"):
        ShareMask(["a"])


def test_a_secret_is_found_again_with_the_patterns_of_today_also_when_it_was_cut_short() -> None:
    store = wakelog.open("memory:", redact=None)  # stored before anybody knew its form
    session = store.session("own")
    session.append(wakelog.UserMessage(f"push with {TOKEN} please"))
    mask = learned(session)
    assert mask.text(f"push with {TOKEN} please") == "push with [redacted:github-token] please"
    assert mask.text(f"push with {TOKEN[:20]}… and more") == "push with [redacted:github-token] and more"


def test_the_review_says_which_kinds_how_often_and_in_which_events() -> None:
    session = wakelog.open("memory:").session("own")
    session.append(wakelog.UserMessage("see /home/mira/a and /home/mira/b"), wakelog.UserMessage("the acme till"))
    mask = ShareMask(["acme"])
    review = mask.learn(session.log, session.log.entries)
    said = [e.seq for e in session.log.entries() if e.kind == "message.added"]
    assert review.kinds == {"user": {said[0]: 2}, "own-word": {said[1]: 1}}
    assert review.total == 3


def test_values_keep_their_shape_and_ids_stay(tmp_path: Path) -> None:
    mask = learned(import_one(till(), tmp_path), "total")
    value = {"uuid": "total-1", "path": ["/home/mira/x", 3, None], "total": {"deep": "total"}}
    assert mask.value(value) == {
        "uuid": "total-1",
        "path": ["/home/[redacted:user]/x", 3, None],
        "[redacted:own-word]": {"deep": "[redacted:own-word]"},
    }
    assert json.dumps(mask.value(value))
