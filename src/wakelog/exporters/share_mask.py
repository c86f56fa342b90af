"""Masks a session before it is shared: secrets, the user's own list of words, and user names in paths.

Secrets were masked when they were stored, with the patterns of that time; here they are searched again. That takes two
passes. The first learns from every event which secrets and home folders there are. The second masks the output. It
knows the secrets by then, so it also finds one that was cut off or split into lines. Paths stay readable:
`/home/[redacted:user]/shop`.
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
_PREFIX = 12
"""How many first characters of a secret are enough to recognise it."""
_UNMASKED = frozenset({"hash", "commit", "uuid", "parentUuid", "sessionId", "session", "kind", "type", "role"})


class MaskReview(msgspec.Struct):
    """What was masked: for each kind, the events and how often."""

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
    """Masks texts and values. Call `learn` first."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._redactor = Redactor()
        self._words = _any_of([_bounded(word) for word in _checked(words)])
        self._secrets: dict[str, str] = {}
        self._people: re.Pattern[str] | None = None
        self._known: re.Pattern[str] | None = None

    def learn(self, log: Log, read: Callable[[], Iterable[Entry]]) -> MaskReview:
        """Reads all events and reports what has to be masked where. The events are read twice, because the home folder
        that reveals a name may come late."""
        names = {match["name"] for entry in read() for text in _texts_of(log, entry) for match in _HOMES.finditer(text)}
        chosen = sorted((n for n in names if len(n) > 2 and n.lower() not in _NOBODY), key=len, reverse=True)
        self._people = _any_of([_in_path(name) for name in chosen])
        review = MaskReview()
        for entry in read():
            for text in _texts_of(log, entry):
                for kind in self._find(text):
                    review.add(kind, entry.seq)
        self._known = _any_of([re.escape(start) + r"[^\s\"'<>`]*" for start in self._secrets])
        return review

    def _find(self, text: str) -> Iterator[str]:
        if self._words is not None:
            yield from (WORD for _ in self._words.finditer(text))
        homes = sum(match["name"].lower() not in _NOBODY for match in _HOMES.finditer(text))
        people = len(self._people.findall(_HOMES.sub(self._mask_home, text))) if self._people is not None else 0
        yield from [USER] * (homes + people)
        for start, end, kind in self._redactor.find(text):
            for line in re.split(r"\n|\\n", text[start:end]):
                if len(line.strip()) >= _PREFIX // 2:
                    self._secrets[line.strip()[:_PREFIX]] = kind
            yield kind

    def text(self, text: str) -> str:
        """A text with everything masked."""
        if not text:
            return text
        if self._words is not None:
            text = self._words.sub(_MARK.format(WORD), text)
        text = _HOMES.sub(self._mask_home, text)
        text = self._redactor.redact_text(text)[0]
        if self._people is not None:
            text = self._people.sub(_MARK.format(USER), text)
        return self._known.sub(self._mask_known, text) if self._known is not None else text

    def _mask_home(self, match: re.Match[str]) -> str:
        return match[0] if match["name"].lower() in _NOBODY else match["lead"] + _MARK.format(USER)

    def _mask_known(self, match: re.Match[str]) -> str:
        return _MARK.format(self._secrets.get(match[0][:_PREFIX], "secret"))

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
    """True if a value looks like an id. Text that people write has spaces, slashes or other signs."""
    return isinstance(value, str) and re.fullmatch(r"[\w.:-]*", value) is not None


def _texts_of(log: Log, entry: Entry) -> Iterator[str]:
    if not entry.record.body:
        return
    yield entry.header.source
    for field in entry.body:
        if field != "delta":  # it repeats the other fields
            yield from _texts_in(content_of(log, entry, field))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            # The key may reveal that a value is a secret although it does not look like one.
            yield from (f"{key}={item}",) if isinstance(item, str) and len(item) < 200 else _texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


def _checked(words: Iterable[str]) -> list[str]:
    results = [word.strip() for word in words if word.strip()]
    for word in results:
        if len(word) < 2:
            raise InvalidInputError(
                f"the word {word!r} is too short to mask: it would match everywhere",
                kind="bad-word",
                hint="use words of at least two characters",
            )
    return sorted(results, key=len, reverse=True)


def _bounded(word: str) -> str:
    """The pattern of a word that is not part of a longer word."""
    before = r"(?<![^\W_])" if word[0].isalnum() else ""
    return before + re.escape(word) + (r"(?![^\W_])" if word[-1].isalnum() else "")


def _in_path(name: str) -> str:
    """The pattern of a name in a path, in a branch, or in a folder name that is made from a path."""
    return rf"(?<=[/\\~-]){re.escape(name)}(?![\w.@])|(?<![\w.@]){re.escape(name)}(?=[/\\])"


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions), re.IGNORECASE) if expressions else None
