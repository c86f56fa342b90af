"""Dialogues with a service: which of the user's words ask for something new, and which only answer.

A coding agent gets orders, and each prompt is one. With a service, the user has a conversation: it asks for a number, a
date, a yes; the user answers, asks what it costs, insists after a refusal. Such words belong to the current request. A
new request has a verb that the user has not used before ("cancel", "add"); or says that it is another one ("also",
"instead", "by the way") and names another thing; or is about something else when the agent had nothing left to ask.

A conversation is with a service if the last turns have no command and no file in them, and either calls of other tools
or a question about who the user is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight.acts import files_of, is_rejected, target_of, works_on_files
from wakelog.insight.blocks import Did, SpokenText, TurnBlocks
from wakelog.insight.sentences import TEXT_MAX, content_words, sentences_of, word_set
from wakelog.model.ids import Seq

TURNS_HEARD: Final = 12
"""How many turns back are read."""
NEW_SHARE: Final = 0.4
"""The share of words that must be new in a request that says it is another one."""
OTHER_SHARE: Final = 0.8
"""The share of words that must be new if it does not say so and its verb was used before."""

_WHO: Final = re.compile(
    r"\b(?:user|account|customer|member|membership|reservation|order|booking|confirmation|tracking|policy|ticket"
    r"|phone|invoice) (?:id|ids|number|code|name)\b|\bdate of birth\b|\bcustomer service\b"
    r"|\b(?:your|my) (?:reservation|booking|order|flight|purchase|subscription|refund|delivery"
    r"|appointment|membership)\b"
    r"|\b(?:zip|postal) code\b|\bemail address\b",
    re.IGNORECASE,
)
"""Topics of a conversation with a service, but not with a coding agent."""
ASKS_WHAT: Final = re.compile(
    r"\b(?:what|which|how)\b[^.?!\n]{0,60}\b(?:would you like|do you (?:want|need|wish)|changes?|modifications?"
    r"|prefer)\b[^.?!\n]*\?"
    r"|\b(?:specify|provide|tell me|let me know|share|details (?:of|about))\b[^.?!\n]{0,60}"
    r"\b(?:what|which|changes?|modifications?|options? you)\b"
    r"|^\W*(?:\d\.|-)?\W*(?:\w+ ){0,3}(?:changes?|modifications?)\b[^.?!\n]{0,80}(?:you (?:want|would like|wish)|:)",
    re.IGNORECASE | re.MULTILINE,
)
"""The agent asks which one, or what exactly. What follows is the answer, whatever its verb."""
_FORM: Final = (
    r"(?:\b(?:can|could|would|will) (?:you|we|i)|\bi(?:['’]d| would|['’]m| am)?(?: \w+ly| also| still| just)*"
    r" (?:like|love|want|wanted|need|needed|wish|prefer|looking|hoping|trying|willing|ready|happy)(?: you)? to"
    r"|\bplease|\blet['’]s|\bhelp me(?: with| to)?|\bgo ahead and"
    r"|\bis (?:it|there)(?: any| a| another)? (?:possible|way) (?:for me )?to"
    r"|\b(?:move on|switch(?: back)?|go back|get back) to(?! you\b| me\b)|\b(?:assist|help)(?: me)? (?:with|in))"
)
_PADDING: Final = (
    r"(?:,? (?:please|also|then|now|just|instead|possibly|maybe|at least|still|first|kindly|simply|you|me|to|with"
    r"|help|assist|go ahead and|in|by|the))*"
)
_VERB: Final = re.compile(rf"(?<!because )(?<!since ){_FORM}{_PADDING},? (?P<verb>[a-z]+)", re.IGNORECASE)
_SECOND: Final = re.compile(
    r"\b(?:and|then)(?: also| then)? (?P<verb>add|remove|cancel|book|upgrade|downgrade|change|order|return|exchange"
    r"|delete|create|send|write)\b",
    re.IGNORECASE,
)
_NO_ACT: Final = word_set(
    "help assist tell know confirm clarify explain check look looking see verify double proceed proceeding continue do"
    " go going let try trying consider explore exploring suggest recommend advise hold wait think make making have"
    " having get getting be being use using pay paying apply find finding guide provide give show transfer keep ensure"
    " move process handle review focus ask understand start begin note repeat offer sort figure request"
    " escalate assure with without by in over wonder wondering say remember honor waive access receive take come need"
    " want like the a an my your our this that these those it them if whether any some there what which how"
    " when where why i we you he she they me us one more about on for of at from or and not no yes is are was able"
    " sure only negotiate arrange appreciate thank hear believe feel select choose pick opt share answer"
)
"""Verbs that ask for information or to continue, and words that are not verbs."""
_CHANGE: Final = word_set("chang modif updat adjust alter edit amend revis")
_POINTS: Final = re.compile(r" (?:that|it|this|those|them)\b", re.IGNORECASE)
"""To change "that" refers to what was said before."""
_ANOTHER: Final = re.compile(
    r"\balso\b|\binstead\b|\bby the way\b|\b(?:one|another) (?:more|other) (?:thing|question|request)\b"
    r"|\banother (?:thing|question|request)\b|\bseparately\b|\bin addition\b|\bbefore (?:i|we) (?:continue|go on)\b"
    r"|\b(?:move on|switch(?: back)?|go back|get back) to\b(?! you\b| me\b)"
    r"|\bwhile (?:i['’]m|you['’]re|we['’]re) at it\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(
    r"\bby the way\b|\b(?:one|another) (?:more|other) (?:thing|question|request)\b|\banother (?:thing|question)\b"
    r"|\bseparately\b|\bbefore (?:i|we) (?:continue|go on)\b|\boh,? (?:and|but)\b",
    re.IGNORECASE,
)
"""It announces another matter."""
_SUPPOSED: Final = re.compile(r"\b(?:if|whether|do i need|would i (?:need|have)|should i)\b[^.?!]*\?", re.IGNORECASE)
"""The user only asks about it and does not request it."""
_INSISTS: Final = re.compile(r"\W*i (?:do )?(?:understand|see|know)\b[^.?!]{0,80}\bbut\b", re.IGNORECASE)
"""It does not accept the answer; other wishes in it are arguments."""
_OTHER_THING: Final = re.compile(r"\bis there (?:any|a|some) (?:chance|possibility)\b.*\binstead\b", re.IGNORECASE)
"""It asks for another thing without a verb for it."""
_NEITHER: Final = re.compile(r"\b(?:neither|none) of (?:these|those|them|the)\b", re.IGNORECASE)


class HeardTurn(msgspec.Struct, frozen=True):
    """What later turns need to know about a turn: who said what, and whether it had work on files or calls."""

    user: str
    agent: str
    """What the agent said last in it."""
    has_work: bool
    has_calls: bool
    changed: tuple[Seq, ...] = ()
    """Its last call that changed files."""
    files: frozenset[str] = frozenset()
    """The files that it changed, or that the user did not let it change."""
    is_rejected: bool = False
    """Whether the user did not let its last call run."""


def heard_of(turn: TurnBlocks) -> HeardTurn:
    said = [b for b in turn.blocks if isinstance(b, SpokenText)]
    calls = [b for b in turn.blocks if isinstance(b, Did)]
    return HeardTurn(
        next((b.text for b in said if b.who == "user"), ""),
        next((b.text for b in reversed(said) if b.who == "agent"), ""),
        any(works_on_files(call) for call in calls),
        bool(calls),
        tuple(call.seq for call in calls if files_of(call))[-1:],
        frozenset(path for call in calls for path in files_of(call) or _refused_files(call)),
        bool(calls) and is_rejected(calls[-1]),
    )


def _refused_files(call: Did) -> list[str]:
    return [path for path in (target_of(call),) if path and is_rejected(call)]


def is_service(heard: Sequence[HeardTurn]) -> bool:
    """Whether these turns are a dialogue with a service."""
    if any(turn.has_work for turn in heard):
        return False
    return any(turn.has_calls or _WHO.search(f"{turn.user[-TEXT_MAX:]} {turn.agent[-TEXT_MAX:]}") for turn in heard)


def is_only_answer(words: str, heard: Sequence[HeardTurn], *, is_asked: bool) -> bool:
    """Whether the user's words, in a dialogue with a service, ask for nothing new. `heard` are the turns before, the
    oldest first; `is_asked` says that the agent's last words ask for something."""
    if not is_service(heard):
        return False
    asked = last_agent_words(heard)
    said = _SUPPOSED.sub(" ", " ".join(turn.user for turn in heard))
    return not _is_new_request(words[:TEXT_MAX], asked[-TEXT_MAX:], said[-TEXT_MAX:], is_asked=is_asked)


def last_agent_words(heard: Sequence[HeardTurn]) -> str:
    """The agent's last words before a turn."""
    return next((turn.agent for turn in reversed(heard) if turn.agent), "")


def _is_new_request(words: str, asked: str, said: str, *, is_asked: bool) -> bool:
    if "?" in words and (_NEITHER.search(words) or _ASIDE.search(words)):
        return True
    is_reply = bool(ASKS_WHAT.search(asked) or _INSISTS.match(words))
    known = content_words(said) | content_words(asked)
    has_answered = False
    for sentence in sentences_of(words):
        verbs = list(_request_verbs(sentence.text))
        if not verbs and not _OTHER_THING.search(sentence.text):
            continue
        own = content_words(_ANOTHER.sub(" ", sentence.text)) - set(verbs)
        is_another = bool(_ANOTHER.search(sentence.text)) and not has_answered
        if is_another and own and len(own - known) >= NEW_SHARE * len(own):
            return True
        if not is_reply and any(not _was_used(verb, said) for verb in verbs):
            return True
        if not (is_reply or is_asked) and own and len(own - content_words(said)) >= OTHER_SHARE * len(own):
            return True
        has_answered = is_reply  # what "also" adds to an answer belongs to it
    return False


def _request_verbs(sentence: str) -> Iterator[str]:
    """The verbs with which a sentence requests something."""
    for pattern in (_VERB, _SECOND):
        for found in pattern.finditer(sentence):
            verb = found["verb"].lower()
            is_vague = _root(verb) in _CHANGE and _POINTS.match(sentence, found.end())
            if verb not in _NO_ACT and not is_vague:
                yield verb


def _was_used(verb: str, said: str) -> bool:
    root = _root(verb)
    roots = "|".join(sorted(_CHANGE if root in _CHANGE else {re.escape(root)}))
    return bool(re.search(rf"\b(?:{roots})\w?(?:e?s|e?d|e|y|ing|ation|ication|ations)?\b", said, re.IGNORECASE))


def _root(verb: str) -> str:
    return re.sub(r"(?:ing|e|y|lation|ication|ation)$", "", verb)
