"""What is masked before a session is shared: secrets, words of one's own, and who is behind the paths.

Secrets were masked when they were stored, by the patterns of that day; here they are looked for again. It takes two
looks. The first goes through every event and learns: which secrets are there, whose home folders, and in which events.
The second masks what is written, and knows the secrets by then, so that one that was cut short for a line, or parted
into lines, is found too. Home folders keep their place: `/home/[redacted:user]/shop`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.redaction import Redactor
from wakelog.timeline.messages import content_of

WORD, USER = "own-word", "user"
_MARK = "[redacted:{}]"
_HOMES = re.compile(
    r"(?P<lead>(?:/home|/Users|/export/home|\b[A-Za-z]:(?:\\{1,4}|/)Users)(?:\\{1,4}|/))(?P<name>[\w.@-]+)"
)
_NOBODY = frozenset({"user", "users", "shared", "public", "runner", "root", "ubuntu", "me", "you", "default", "all"})
_KNOWN = 12
"""So many first characters of a secret are enough to know it again."""
_UNMASKED = frozenset({"hash", "commit", "uuid", "parentUuid", "sessionId", "session", "kind", "type", "role"})


class MaskReview(msgspec.Struct):
    """What was masked: by kind, the events, each with how often."""

    kinds: dict[str, dict[Seq, int]] = {}

    def add(self, kind: str, seq: Seq) -> None:
        events = self.kinds.setdefault(kind, {})
        events[seq] = events.get(seq, 0) + 1

    @property
    def total(self) -> int:
        return sum(sum(events.values()) for events in self.kinds.values())

    @property
    def events(self) -> set[Seq]:
        return {seq for events in self.kinds.values() for seq in events}


class ShareMask:
    """Masks texts and values. `learn` goes first."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._redactor = Redactor()
        self._words = _any_of([_bounded(word) for word in _checked(words)])
        self._secrets: dict[str, str] = {}
        self._people: re.Pattern[str] | None = None
        self._known: re.Pattern[str] | None = None

    def learn(self, log: Log, read: Callable[[], Iterable[Entry]]) -> MaskReview:
        """Goes through everything that events hold, and says what is to be masked where. It is read twice: a name is
        known by a home folder that may come late."""
        names = {match["name"] for entry in read() for text in _texts_of(log, entry) for match in _HOMES.finditer(text)}
        chosen = sorted((n for n in names if len(n) > 2 and n.lower() not in _NOBODY), key=len, reverse=True)
        self._people = _any_of([_in_path(name) for name in chosen])
        review = MaskReview()
        for entry in read():
            for text in _texts_of(log, entry):
                for kind in self._look(text):
                    review.add(kind, entry.seq)
        self._known = _any_of([re.escape(start) + r"[^\s\"'<>`]*" for start in self._secrets])
        return review

    def _look(self, text: str) -> Iterator[str]:
        if self._words is not None:
            yield from (WORD for _ in self._words.finditer(text))
        homes = sum(match["name"].lower() not in _NOBODY for match in _HOMES.finditer(text))
        people = len(self._people.findall(_HOMES.sub(self._home, text))) if self._people is not None else 0
        yield from [USER] * (homes + people)
        for start, end, kind in self._redactor.find(text):
            for line in re.split(r"\n|\\n", text[start:end]):
                if len(line.strip()) >= _KNOWN // 2:
                    self._secrets[line.strip()[:_KNOWN]] = kind
            yield kind

    def text(self, text: str) -> str:
        """A text with everything masked."""
        if not text:
            return text
        if self._words is not None:
            text = self._words.sub(_MARK.format(WORD), text)
        text = _HOMES.sub(self._home, text)
        text = self._redactor.redact_text(text)[0]
        if self._people is not None:
            text = self._people.sub(_MARK.format(USER), text)
        return self._known.sub(self._again, text) if self._known is not None else text

    def _home(self, match: re.Match[str]) -> str:
        return match[0] if match["name"].lower() in _NOBODY else match["lead"] + _MARK.format(USER)

    def _again(self, match: re.Match[str]) -> str:
        return _MARK.format(self._secrets.get(match[0][:_KNOWN], "secret"))

    def value(self, value: Any) -> Any:
        """A value with everything masked in its texts and keys. Ids and hashes stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                self.text(str(k)): v if k in _UNMASKED and _is_plain(v) else self.value(v) for k, v in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def _is_plain(value: Any) -> bool:
    """Whether an id's value looks like one: what people write has spaces, slashes or signs."""
    return isinstance(value, str) and re.fullmatch(r"[\w.:-]*", value) is not None


def _texts_of(log: Log, entry: Entry) -> Iterator[str]:
    if not entry.record.body:
        return
    yield entry.header.source
    for field in entry.body:
        if field != "delta":  # it repeats what the fields say
            yield from _inside(content_of(log, entry, field))


def _inside(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            # A key may say "secret" of a value that does not look like one.
            yield from (f"{key}={item}",) if isinstance(item, str) and len(item) < 200 else _inside(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _inside(item)


def _checked(words: Iterable[str]) -> list[str]:
    found = [word.strip() for word in words if word.strip()]
    for word in found:
        if len(word) < 2:
            raise InvalidInputError(
                f"the word {word!r} is too short to be masked: it is everywhere",
                kind="bad-word",
                hint="give words of two characters and more",
            )
    return sorted(found, key=len, reverse=True)


def _bounded(word: str) -> str:
    """A word of one's own, in any case, and not in the middle of another word."""
    before = r"(?<![^\W_])" if word[0].isalnum() else ""
    return before + re.escape(word) + (r"(?![^\W_])" if word[-1].isalnum() else "")


def _in_path(name: str) -> str:
    """A name as a part of a path, of a branch, or of a folder's name that is made from a path."""
    return rf"(?<=[/\\~-]){re.escape(name)}(?![\w.@])|(?<![\w.@]){re.escape(name)}(?=[/\\])"


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions), re.IGNORECASE) if expressions else None
