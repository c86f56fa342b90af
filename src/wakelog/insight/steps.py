"""Steps of a turn: each call with the words before it, and whether it went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight.acts import Act, act_of, files_of, is_refused
from wakelog.insight.blocks import Block, Did, SpokenText
from wakelog.insight.checks import has_failed_check
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of
from wakelog.model.command_lines import command_line, shell_commands
from wakelog.model.values import Value

SIMILAR: Final = 0.5
"""Two calls are tries of the same thing if they share this part of their words."""
SAME_OUTPUT: Final = 0.6
"""Two calls fail in the same way if they share this part of the words of their output."""
OUTPUT_HEAD: Final = 300
TOLD_MAX: Final = 1000
"""In a text longer than this, an agent thinks aloud: only its end belongs to the call."""
CONCLUSION: Final = 3
"""How many sentences at the end of a long text are read."""

_SIBLING: Final = re.compile(r"Sibling tool call errored|cancelled because another|not executed because")
_BAD: Final = re.compile(
    r"^\W*(?:wrong|execution timed out|error:|traceback|fatal:|usage:|unknown (?:flag|option|command)|unrecognized)"
    r"|\bcommand not found\b|\bNo such file or directory\b|\bTraceback \(most recent|\"error\": ?\{",
    re.IGNORECASE,
)
"""The output of a command says that it failed, whatever its exit code was."""
_IDLE: Final = frozenset({"cd", "echo", "export", "set", "sleep"})
_WORD: Final = re.compile(r"[A-Za-z][\w.-]{2,}")


class TurnStep(msgspec.Struct, frozen=True):
    """A call, with what the agent said since the call before it."""

    place: int
    """The position of the call in the turn."""
    call: Did
    act: Act
    said: tuple[SpokenText, ...]
    is_wrong: bool
    """Whether it failed itself, not only because a parallel one did."""

    def sentences(self) -> Iterator[tuple[SpokenText, Sentence]]:
        """The sentences before the call; of a long text only the last ones."""
        for spoken in self.said:
            sentences = sentences_of(spoken.text)
            for sentence in sentences[-CONCLUSION:] if len(spoken.text) > TOLD_MAX else sentences:
                yield spoken, sentence


def steps_of(blocks: Sequence[Block]) -> list[TurnStep]:
    """The calls of a turn in order, without those that only failed because of a parallel one."""
    steps: list[TurnStep] = []
    texts: list[SpokenText] = []
    for place, block in enumerate(blocks):
        if isinstance(block, SpokenText):
            if block.who != "user" and is_english(block.text):
                texts.append(block)
        elif not _SIBLING.search(block.output[:OUTPUT_HEAD]):
            steps.append(TurnStep(place, block, act_of(block), tuple(texts), has_gone_wrong(block)))
            texts = []
    return steps


def has_gone_wrong(call: Did) -> bool:
    """Whether a call failed, by its outcome or by what it says."""
    if call.has_failed:
        return True
    act = act_of(call)
    if act == "check":
        return has_failed_check(call)
    return act in ("write", "run") and (is_refused(call) or bool(_BAD.search(call.output[:OUTPUT_HEAD])))


def method_of(call: Did) -> str:
    """The method of a call: the tool, and for a shell the first program that does something."""
    line = command_line(call.input)
    if not line:
        return call.tool
    programs = [c.program for c in shell_commands(line) if c.program not in _IDLE]
    return f"{call.tool} {programs[0]}" if programs else call.tool


def is_service_call(call: Did) -> bool:
    """Whether a call requests an effect from a service, not from a shell or a file."""
    return call.effect == "external" and act_of(call) == "run" and not command_line(call.input)


def is_similar(one: Did, other: Did) -> bool:
    """Whether two calls try the same thing: they are about the same file, or most of their words are the same."""
    return bool(set(files_of(one)) & set(files_of(other))) or _share(_words(one), _words(other)) >= SIMILAR


def fails_the_same_way(one: Did, other: Did) -> bool:
    """Whether the same call failed twice with the same words."""
    if not is_similar(one, other):
        return False
    outputs = [content_words(call.output[:OUTPUT_HEAD]) for call in (one, other)]
    return _share(*outputs) >= SAME_OUTPUT


def _words(call: Did) -> frozenset[str]:
    return frozenset(_WORD.findall(command_line(call.input) or " ".join(_texts(call.input))))


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (min(len(one), len(other)) or 1)
