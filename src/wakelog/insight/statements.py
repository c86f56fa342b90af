"""Tells a coding agent's user who only reacts from one who asks for something.

A request has a form: a question, an order, a wish, a "should". What is left are statements, which begin with their
subject. A statement about what was just done takes up the turn before: its subject points back ("it", "that", "you",
"still"), it reports a failure, or most of its words were said there. So "the list is empty now" and a pasted log set no
goal of their own, and "the footer has no border" does, if nobody has spoken of a footer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from wakelog.insight.dialogue import HeardTurn
from wakelog.insight.sentences import TEXT_MAX, content_words, sentences_of

FAULTS: Final = frozenset({"correction", "failure_report"})
"""The reactions that complain."""
REACTION_MAX: Final = 400
"""How long a reaction may be, in characters, without what is pasted."""
ASIDE_MAX: Final = 1
"""How many new words a question may have that only complains."""
NEW_SHARE: Final = 0.5
"""The share of words in a statement that nobody has used before, from which it is about something else."""
PASTED_SHARE: Final = 0.5
"""The share of plain words in a line of prose. A pasted one has fewer."""
LOG_SHARE: Final = 0.75
"""The same, for a line with an error in it."""

ERROR_LINE: Final = re.compile(
    r"^[ \t]*(?:[\w.]*(?:Error|Exception)\b(?! (?:messages?|handling|pages?|states?|codes?)\b):?"
    r"|Traceback \(most|error(?:\[\w+\]| TS\d+)?:|fatal:|panic:|npm ERR!|FAILED\b"
    r"|Unhandled |Uncaught |[\w:. -]*(?:command not found|No such file or directory)\b"
    r"|\w[\w ]{0,30}failed (?:because|with|to)\b)"
    r"|\berror (?:TS|CS)\d+|\"severity\": ?(?:8|\"error\")|\bfailed: *$|^.{0,80}: (?:fatal )?error:|✗ Failed\b"
    r"|\b(?:[Tt]ests?|[Bb]uild) failed\b"
    r"|\bexit code [1-9]",
    re.MULTILINE,
)
"""A line of a log that tells an error."""
_FENCE: Final = re.compile(r"(```|\"{3}|'{3}).*?(?:\1|\Z)", re.DOTALL)
_LOG_TAIL: Final = re.compile(r"\bTraceback \(most recent call last\).*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*\w")
_PLAIN: Final = re.compile(r"[(\"'*_]*[A-Za-z][a-z]*(?:['’-][a-z]+)*[)\"'*_]*[.,:;!?]*")
"""A word as people write it: without digits, code or capitals inside."""
_LEAD: Final = (
    r"(?:(?:ok|okay|yes|yeah|yep|yup|no(?=[,.!])|nope|oh|ah|hm+|well|and|but|so|now|great|good|nice|cool|perfect|awesome"
    r"|excellent|amazing|(?:thanks|thank you)(?: for [^,.!\n]*)?|sorry"
    r"|unfortunately|actually|however|currently|at least|hey|wait|sadly|then)\b[,.!: ]*)*"
)
_LEADING: Final = re.compile(_LEAD, re.IGNORECASE)
_REFERS: Final = re.compile(
    _LEAD
    + r"(?:it|that|this|these|those|they|you|still|(?:same|again)(?! (?:for|with|in|on|to|but)\b)|nothing|none|not"
    r"|works?|working|looks?|seems?|sounds?|feels?|love|go with"
    r"|(?:much |a bit |way |even |all )?(?:better|worse|good|fine|done)(?= (?:now|thanks?|but|than)\b|[,.!]|\Z)"
    r"|(?:(?:i|we)(?:['’]ve| have)? (?:(?:just|only|already|also|now|still) )*\w+ed"
    r"|i(?:['’]ll| will| (?:do|did|could|can)(?: not|n['’]?t|not))|(?:i |we )?(?:(?:just|only|already|still) )*"
    r"(?:get|got|getting|see|saw|ran|did|tried|mean|meant))\b(?! (?:up|more|another|some|a few)\b)"
    r"|\Z)",
    re.IGNORECASE,
)
"""A statement whose subject is in the turn before, or is what the user did with it and saw."""
_STATES: Final = re.compile(
    _LEAD + r"(?:(?:i|we|he|she|when (?:i|we)|there|because|since|as)\b"
    r"|(?:the|a|an|my|your|our|its|their|no|some|all|both|every\w*|any\w*) (?:[^\n]*"
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|not|cannot|fail|break|crash|hang|work|look"
    r"|\w+n['’]?t)\b|[^\n]*['’](?:s|re) |\S+ [^\n]*\w(?:s|ed)\b))",
    re.IGNORECASE,
)
"""A statement about something that it names. Without a verb ("now the footer"), it is no statement."""
_WISHES: Final = re.compile(
    r"\b(?:should(?! (?:be )?(?:good|fine|ok|okay|enough|work)\b)|shall|must|needs?|(?<!n['’]t )(?<!nt )(?<!not )wants?"
    r"|wanna|gotta|please|pls|plz|let['’]?s|lets|rather|prefer|wish|ought|supposed|wanted to|would (?:like|love|be)"
    r"|['’]d (?:like|love)|(?:has|have|had) to|help me"
    r"|(?:can|could|would|will) (?:you|u|we)|how about|what about)\b",
    re.IGNORECASE,
)
ORDERS: Final = re.compile(
    r"(?:(?:no,|let['’]?s|then|and|now|first|please|just|you|so),? )*(?:add|fix|write|run|create|make|remove"
    r"|change(?! of plans?\b)|implement|update|refactor|start|stop|open|show|check|look|explain|find|list|install|read"
    r"|use|try|rename|move|delete"
    r"|build(?! (?:errors?|fail\w*|output)\b)|commit|push|merge|revert|replace|split|test|deploy|document|follow|switch"
    r"|set|put|convert|drop|apply|generate|clean|improve|undo|redo|rewrite|keep|leave|release|publish|wire|extract)\b",
    re.I,
)
_TELLS_TO: Final = re.compile(
    r"(?:(?:and|then|now|so|just) )*(?!(?:now|hm+|love|and|but|or|so|if|as|at|by|for|from|in|into|of|on|onto|over|per"
    r"|to|up|with|without|when|while|where|after|before|because|since|until|till|than|like|not|only|even|still|also|all"
    r"|both|that|is|are|was|were|did|does|do|has|have|had|got|get|saw|see|i|we|you|he|she|it|they|about|under|inside"
    r"|during|except|unless|though|which|who|what|how|why|yes|ok|okay|no|nope|thanks|again|here|there|maybe"
    r"|\w+(?:s|ed|ing|ly))\b)[a-z]+ (?:it|them|this|these|those|the|an?|my|our|me|us|all|every\w*)\b",
    re.IGNORECASE,
)
"""A verb in its plain form with what it is to be done to."""
PART: Final = re.compile(r"[.!?,;]\s+|\n+|\s[-–—]+\s")

_QUESTION: Final = re.compile(
    r"\?|(?:^|\s)(?:what|why|how|who|where|when|which) (?:do|does|did|is|are|am|was|can|could|would|to)\b"
    r"|\bany ?way to\b|\bplease (?!(?:do|go|proceed|continue)\b)\w+ \w+",
    re.IGNORECASE,
)
"""A question or a request, also without its mark."""
_BROKEN: Final = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|crash\w*|nothing happen\w*|(?:not|n['’]?t) work\w*)\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"`[^`\n]+`")
_REPEATS: Final = re.compile(r"(?:\w+ )(?:it |that |this |them )?(?:again|once more)[\s.!]*", re.IGNORECASE)
"""An order to do the last thing again."""


def only_reacts(words: str, heard: Sequence[HeardTurn], kinds: Set[str]) -> bool:
    """Whether a user's words to a coding agent only react to the turn before. `heard` are the turns before, the oldest
    first; `kinds` are those of the reactions that the words are."""
    prose, is_failure = prose_of(words), "failure_report" in kinds
    if not heard or not prose or len(prose) > REACTION_MAX:
        return bool(heard) and not prose and is_failure
    if _REPEATS.fullmatch(prose) or not (content_words(prose) or _requests(prose)):
        return True
    said = content_words(" ".join((*(turn.user[-TEXT_MAX:] for turn in heard), heard[-1].agent[-TEXT_MAX:])))
    sentences = [sentence.text for sentence in sentences_of(prose)]
    if kinds & FAULTS:
        sentences = [text for n, text in enumerate(sentences) if n == 0 or not _is_aside(text, said)]
    if any(map(_asks, sentences)):
        return False
    is_stated = list(map(_states, sentences))
    if is_failure and (len(prose) < len(words) or len(sentences) == 1):
        return True
    if is_failure or _BROKEN.search(prose):
        return any(is_stated)
    return all(is_stated) and all(_REFERS.match(text) or _is_about(text, said) for text in sentences)


def _is_aside(sentence: str, said: Set[str]) -> bool:
    """Whether a question beside a complaint belongs to it, as "what is going on?" does."""
    return is_question(sentence) and not _requests(sentence) and len(content_words(sentence) - said) <= ASIDE_MAX


def _is_about(statement: str, said: Set[str]) -> bool:
    """Whether a statement is about what was said: its subject, which comes first, or most of it."""
    statement = _LEADING.sub("", statement, count=1)
    own = content_words(statement)
    first = next((word for word in _WORD.findall(statement) if word.lower() in own), "")
    return first.lower() in said or len(own - said) < NEW_SHARE * len(own) or not own


def prose_of(words: str) -> str:
    """What a user wrote, without the logs and the code pasted into it. A paste goes on up to an empty line, a question
    or a request."""
    text, lines, is_paste = _LOG_TAIL.sub("", _CODE.sub("it", _FENCE.sub("\n", words[:TEXT_MAX]))), list[str](), False
    for line in map(str.strip, text.splitlines()):
        is_paste = _is_pasted(line) or (is_paste and bool(line) and not _asks(line))
        lines += [] if is_paste else [line]
    return "\n".join(lines).strip()


def _is_pasted(line: str) -> bool:
    parts = line.split()
    if line.startswith("#"):  # a report made from a template
        return True
    share = sum(bool(_PLAIN.fullmatch(part)) for part in parts) / len(parts) if parts else 1
    return share < PASTED_SHARE or bool(ERROR_LINE.match(line) or (share < LOG_SHARE and ERROR_LINE.search(line)))


def is_question(text: str) -> bool:
    return bool(_QUESTION.search(text))


def asks_for_something(words: str) -> bool:
    """Whether any sentence of a user's words is a question, an order or a wish, or at least no statement."""
    return any(_asks(sentence.text) or not _states(sentence.text) for sentence in sentences_of(words))


def _states(sentence: str) -> bool:
    return bool(_REFERS.match(sentence) or _STATES.match(sentence))


def _asks(text: str) -> bool:
    return is_question(text) or _requests(text)


def _requests(sentence: str) -> bool:
    """Whether a sentence asks, orders or wishes in any of its parts."""
    first, *later = PART.split(sentence)
    orders = (ORDERS.match(first), *(ORDERS.match(part) or _TELLS_TO.match(part) for part in later))
    return bool(_WISHES.search(sentence)) or any(orders)
