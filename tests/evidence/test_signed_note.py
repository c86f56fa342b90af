"""Signed notes: the example of Go's package as a second opinion, and notes that somebody touched."""

import pickle
from pathlib import Path

import pytest

from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError, UnavailableError
from wakelog.evidence.key_source import read_key, read_public_key, write_key
from wakelog.evidence.signed_note import PrivateKey, PublicKey, open_note

# From the documentation of golang.org/x/mod/sumdb/note.
SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
NOTE = (
    TEXT
    + "\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
KEY = PublicKey.parse(PUBLIC)


def test_we_sign_as_another_implementation_does() -> None:
    key = PrivateKey.parse(SECRET)
    assert str(key.public) == PUBLIC
    assert key.sign(TEXT) == NOTE
    assert key.to_text() == SECRET


def test_a_note_says_who_signed_it() -> None:
    assert open_note(NOTE, [KEY]) == (TEXT, KEY)


def test_signatures_of_others_are_passed_over() -> None:
    other = PrivateKey.new("witness.example")
    both = NOTE + other.sign(TEXT).rpartition("\n\n")[2]
    assert open_note(both, [KEY])[1] == KEY
    assert open_note(both, [other.public])[1] == other.public


@pytest.mark.parametrize(
    "note",
    [
        NOTE.replace("answer", "question"),
        NOTE.replace("x08go/Z", "x08go/Y"),
        NOTE.replace("— ", "- "),
        NOTE[:-1],
        NOTE[:-10] + "\n",
        TEXT,
        "",
        "\n\n",
        NOTE.replace("\n", "\r\n"),
        NOTE.replace("If", "\x00If"),
        TEXT + "\n— PeterNeumann AAAA\n",
        TEXT + "\n" + NOTE.rpartition("\n\n")[2] * 101,
        "x" * (1 << 20) + "\n" + NOTE,
    ],
)
def test_a_note_that_somebody_touched_is_refused(note: str) -> None:
    with pytest.raises(CorruptLogError):
        open_note(note, [KEY])


def test_a_note_of_another_key_of_the_same_name_is_refused() -> None:
    forged = PrivateKey.new("PeterNeumann").sign(TEXT)
    with pytest.raises(CorruptLogError, match="none of the given keys"):
        open_note(forged, [KEY])
    with pytest.raises(CorruptLogError, match="none of the given keys"):
        open_note(NOTE, [])


@pytest.mark.parametrize("text", ["", "\n", "no end", "empty line at the end\n\n"])
def test_only_whole_lines_are_signed(text: str) -> None:
    with pytest.raises(InvalidInputError):
        PrivateKey.parse(SECRET).sign(text)


@pytest.mark.parametrize("name", ["", "two words", "a+b", "tab\t", "line\n", "\u202ename"])
def test_a_name_that_would_not_be_read_back_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot name a key"):
        PrivateKey.new(name)


@pytest.mark.parametrize("text", ["", "x", PUBLIC[:-4], PUBLIC.replace("c74f20a3", "c74f20a4"), PUBLIC + "AA", SECRET])
def test_what_is_not_a_public_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        PublicKey.parse(text)


# The secret stays where it is


def _said(error: BaseException) -> str:
    return f"{error!r} {error} {error.__cause__!r} {error.__context__!r} {getattr(error, 'hint', '')}"


def test_a_private_key_is_not_shown_and_not_copied() -> None:
    key = PrivateKey.parse(SECRET)
    assert "AYEKF" not in f"{key!r} {key} {vars(key)}"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_key_given_as_an_argument_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInputError, match="given as an argument") as told:
        read_key(SECRET)
    assert "AYEKF" not in _said(told.value)


@pytest.mark.parametrize("text", [SECRET[:-3], SECRET.replace("c74f20a3", "00000000"), "AYEKF", ""])
def test_a_broken_key_is_not_repeated(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    monkeypatch.setenv("ANCHOR_KEY", text or "AYEKF")
    for source in (str(path), "env:ANCHOR_KEY", f"command:cat {path}"):
        with pytest.raises(InvalidInputError, match="does not give a private key") as told:
            read_key(source)
        assert "AYEKF" not in _said(told.value)


def test_a_key_comes_from_a_file_a_variable_or_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    write_key(PrivateKey.parse(SECRET), path)
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("ANCHOR_KEY", SECRET + "\n")
    for source in (str(path), f"file:{path}", "env:ANCHOR_KEY", f"command:cat '{path}'"):
        assert str(read_key(source).public) == PUBLIC


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(SECRET)
    path.chmod(0o644)
    with pytest.raises(NotAllowedError, match="other users"):
        read_key(str(path))


def test_a_key_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(PrivateKey.parse(SECRET), path)
    with pytest.raises(NotAllowedError, match="already exists"):
        write_key(PrivateKey.new("other"), path)
    assert path.read_text().strip() == SECRET


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("", InvalidInputError),
        ("nowhere/key", NotFoundError),
        ("env:NOT_SET_ANYWHERE", NotFoundError),
        ("command:", InvalidInputError),
        ("command:'open", InvalidInputError),
        ("command:no-such-program-anywhere", NotFoundError),
        ("command:false", UnavailableError),
    ],
)
def test_a_source_without_a_key_is_told(source: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_key(source)


def test_a_public_key_is_given_as_text_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "pub").write_text(PUBLIC + "\n")
    assert read_public_key(PUBLIC) == read_public_key(str(tmp_path / "pub")) == KEY
    with pytest.raises(NotFoundError):
        read_public_key(str(tmp_path / "none"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(NotFoundError):
        read_public_key(str(tmp_path / "bytes"))
