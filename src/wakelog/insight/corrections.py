"""Finds corrections: how the user reacts to the agent's work.

A correction rejects or contradicts. A redirect wants it done another way. A failure report says that it does not work.
"No, that's all" rejects nothing, and "if that fails, use the backup instead" is not a redirect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight.blocks import Finding, SpokenText, TurnBlocks
from wakelog.insight.cues import phrases
from wakelog.insight.dialogue import ASKS_WHAT, HeardTurn, is_service, last_agent_words
from wakelog.insight.sentences import TEXT_MAX, Sentence, sentences_of
from wakelog.insight.statements import ERROR_LINE
from wakelog.insight.user_words import ASKED, is_repeated, words_of

SENTENCES_MAX: Final = 12
"""How many sentences at the start of the user's words are read."""
NO_WORDS: Final = 4
"""A "no" with this many words more says why, or what else to do."""
_SCORE_MIN: Final = 3

_FAILS: Final = phrases(
    r"""
    (?:still|again)\b.{0,40}\b<bad>
    (?:is|are|'s|'re) still (?!fine|ok|okay|good|valid|true|needed|in progress|working|passing|open)\w+
    (?<!^)(?:does|did|do|is|are|was|were|has|have)(?: not|n't)\b.{0,30}\b<does>
    ^(?:does|did|is|are|was|were|has|have)(?: not|n't)\b.{0,30}\b<does>
    (?:is|are|'s|'re) not (?:\w+ing|centered|aligned|saved|updated|applied|fixed|shown|displayed|rendered|visible)
    not (?:working|loading|showing|building|passing)
    no \w+(?: or \w+)? (?:is|are|was|were) \w+ing
    (?:^|it |this |now |also |still )(?:fails|failed|crashes|crashed|broke|breaks)|stop(?:s|ped) working
    ^(?:the|it|this|that)(?: [\w-]+){0,3} still (?!needs?|should|works?|pass\w*|has|have|to|fine|ok|okay|good)\w+
    (?:can't|cannot|could not|couldn't) get .{1,40} to (?:work|run|build|start|show)
    i (?:can't|cannot|don't|do not) see (?:the|it|my|that|them)(?! point| reason| need| problem| issue| why)
    (?:turns?|turned|goes|went) (?:black|blank|white|empty)
    when i \w+ .{1,60},? (?:i get|it says|nothing)|and (?:got|get|getting) (?:an?|the|this|these) (?:\w+ )?<fault>
    (?:a|the) bug (?:is|that(?:'s| is)) \w+ing
    (?:is|are) (?:gone|missing|broken|empty) (?:now|again)|disappeared|works,? but
    getting (?:(?:this|an?|the) )?(?:\w+ )?(?:errors?|exceptions?|warnings?|[45]\d\d)
    (?:i|we)(?:'m| am|'re| are)?(?: \w+)? (?:get|got|see|saw|hit|face|receive)(?:t?ing|d)? (?:\w+ ){0,2}<fault>
    ^(?:it|this|that)(?:'s| is) (?:still |now |always |just )?<harms>
    (?:the )?same (?:error|problem|issue|result)
    tests? (?:is|are|still)? ?fail(?:s|ed|ing)? (?:now|again|with)|tests? (?:is|are) (?:now |still )?failing
    there(?:'s| is) (?:an?|still) (?:error|problem|issue|bug)|(?:error|problem|issue|bug|failure)s? (?:still )?persists?
    nothing (?:happens|happened|changed|appears|shows)
    ^(?:still )?not fixed
    (?:it|this|that) did(?: not|n't) (?!matter|need|mean|have)\w+
    ^(?:\w+,? )?now (?:it's|i get|we get|i got|i'm getting)\b.{0,60}\b(?:error|unauthorized|forbidden|denied|[45]\d\d)
    ^(?:build|compile|compilation|runtime|test|type|lint) (?:errors?|failures?)
    failed to (?:resolve|fix|solve)|seems to have failed
    (?:seems?|appears?)(?: to be| to)? not \w+|(?:figure|find) out why
    you (?:\w+ )?(?:do|did) nothing|you still (?:fail\w*|haven't|didn't)
    there(?:'s| is| are) (?:some|still|a few|more|other|new) (?:bug|error|issue|problem)s?
    """,
    bad="not, n't, fail\\w*, broken, wrong, error, nothing, no, same, get\\w*, see\\w*, happen\\w*, empty, blank,"
    "missing",
    fault="\\w*errors?, \\w*exceptions?, failures?, warnings?, [45]\\d\\d",
    harms="duplicating, repeating, overwriting, ignoring, throwing, crashing, failing, hanging, blocking, breaking,"
    "losing, skipping, overlapping, freezing, flickering, deleting, missing",
    does="work\\w*, load\\w*, show\\w*, compil\\w*, build\\w*, run\\w*, pass\\w*, appear\\w*, happen\\w*, start\\w*,"
    "render\\w*, open\\w*, fix\\w*, help\\w*, solv\\w*, enabl\\w*, updat\\w*,"
    "sav\\w*, display\\w*, respond\\w*, visible, clickable, align\\w*",
)
_PASTED: Final = re.compile(
    r"""(?:[^\n]{0,60}\n\s*)?(?:```|\"{3}|'{3})(?:(?!```|\"{3}|'{3}).)*?\b(?:error|exception|traceback|failed)\b""",
    re.IGNORECASE | re.DOTALL,
)
"""Words that are hardly more than a pasted log with an error in it."""
_NO: Final = re.compile(r"(?:no|nope?|nah)\b", re.IGNORECASE)
_WANT: Final = phrases(r"i (?:don't|do not) want (?:a|an|the|you|any|it|this|that)")
_REJECTS: Final = phrases(
    r"""
    ^(?:no|nope?|nah|stop(?! (?:at|there|here|after|when|once|before|if))|hold on|hmm+,? no|not quite|wrong)
    ^wait[,.!]
    ^not (?:that|this|the|like|what|with|in|on|for)
    (?:is|are)(?: not|n't) the (?:right|correct|best|way|one)\b
    (?:is|are) (?:no need|unnecessary|not (?:needed|necessary|useful|helpful|relevant|required)|incorrect)
    (?:does not|doesn't) (?:consider|handle|account|respect|take into)
    only what (?:i |was |is )?(?:asked|requested)
    that(?:'s| is) (?:not|n't|wrong|incorrect|the wrong)
    this (?:is|isn't) (?:wrong|incorrect|not (?:what|right|correct)|what i)
    not what i|(?<!what )i (?:meant|said|told you)|as i said
    i (?:didn't|did not|never) (?:ask|want|say|mean)
    i (?:actually |really )?(?:don't|do not) want (?:a|an|the|you|any|it|this|that)
    you (?:should(?:n't| not|'ve| have)|must not|didn't|did not|forgot|missed|misunderstood|removed|broke|deleted)
    you ignored
    ^(?:please )?(?:don't|do not|never) (?!<mild>)\w+
    ^(?:please |now |then )?(?:revert|undo|roll ?back|restore)
    ^(?:please |now |then |let's )?go back to (?:the (?:previous|old|original|earlier|last)|what|where|how)
    (?:was|were|looked) better before|looks? worse
    put (?:it|that|this) back
    neither of (?:those|these|them)
    doesn't (?:make sense|seem right|look right)
    (?:this|that|it) (?:is not|isn't) (?:great|good|ideal|nice|acceptable|enough)
    why(?:'d| did| are| do| would) you
    i(?:'m| am) not (?:happy|satisfied|interested)
    that doesn't|isn't (?:right|correct|true|what)
    i(?:'ve| have)? (?:already|previously) (?:told|said|mentioned|provided|gave)
    unacceptable|i disagree
    (?:above|over|outside|beyond|exceeds?) my budget
    (?:it|this|that|they|might|still)(?:'s| is| are| seems?| looks?| be)? (?:\w+ )?too (?!bad|soon|good|late to)\w+
    forget (?:about )?(?:that|this|it)|(?:ignore|skip|drop) (?:that|this) (?:part|idea|one|step)
    (?:don't|do not) want to be transferred
    ^i (?:do )?(?:understand|see|know)\b[^.?!]{0,60}\bbut please (?!<mild>)\w+
    ^i (?:really )?appreciate (?:the|that|this) [^.?!]{0,40}\bbut i(?:'m| am|'d| would)\b
    ^(?:i (?:understand|see|know)[^.?!]{0,40}\bbut )?(?:but )?i(?:'m| am) <sure>
    (?:a|some|any) (?:misunderstanding|mix-?up|confusion)
, (?:so |but |and )?please (?:don't|do not) (?!<mild>)\w+
    (?:don't|do not) (?:rename|touch|change|remove) (?:it|that|this|them)
    """,
    sure="(?!not )(?:\\w+ )?(?:sure|certain|positive) (?!(?:you|if|whether|how|what)\\b)",
    mild="worry, forget, hesitate, mind, know, have, think, see, need, like, remember, care, want",
)
_TOO_MUCH: Final = phrases(
    r"""
    (?:is|are|looks?|seems?|feels?) (?:\w+ )?too (?!bad|soon|good|late to)\w+|not a (?:big )?fan of
    ^(?:\w+ )?(?:the|my|all|this|that)(?: [\w-]+){0,3} (?:is|are|looks?) (?:\w+ )?<amiss>
    ^there(?:'s| is) no (?!need|rush|hurry|problem|worries)\w+
    """,
    amiss="wrong, broken, blank, gone, messed up, misaligned, cut off",
)
"""To a coding agent, it is not as it should be."""
_PLEASED: Final = re.compile(r"(?:YES|YEAH|OK|GO|PLEASE|THANK|GREAT|GOOD|NICE|PERFECT|LOVE|WOW)")
SHOUTED: Final = range(12, 300)
"""How many characters a shout has."""
_OUGHT: Final = re.compile(
    r"(?:\S*[./]\S+|(?:it|this|that)(?: [\w-]+){0,2}) should (?:be|use|have|say|show|go|look|not|only)\b",
    re.IGNORECASE,
)
"""At the start, it says how the work should be, and so that it is not."""
_REDIRECTS: Final = phrases(
    r"""
    instead(?: of)?|rather th[ae]n
    ^actually
    ^(?:yes|yeah|yep|ok|okay|sure),? but
    ^instead of [^,]{3,80}, (?:can|could|let's|please|just|use|do|make|why)
    let's (?:only|just|not)
    but (?:leave|keep(?! in mind))
    i(?:'d| would) (?:rather|prefer)
    ^(?:\w+,? )?change of plans?|on second thought|changed my mind
    """
)
_MOVES_ON: Final = re.compile(
    r"(?:(?:ok|okay|great|good|perfect|nice|thanks|alright|and)[,.! ]+)*(?:(?:now|next|then|also),? "
    r"(?!(?:it|i|we|the|there|this|that)\b)\w+|i (?:need|want) you to\b(?! instead))",
    re.IGNORECASE,
)
"""It asks for the next thing, so it rejects nothing."""
_TURNS: Final = re.compile(r"(?:but|however|unfortunately)\b", re.IGNORECASE)
"""What comes after praise."""
_DOUBTS: Final = re.compile(
    r"(?:yes|yeah|yep|ok|okay|sure),? but\b.*\?$|actually,? never ?mind\b", re.IGNORECASE | re.DOTALL
)
"""A question about later, or words that end the matter."""
_UNDOES: Final = re.compile(r"(?:can|could|would) (?:you|we) (?:please )?(?:revert|undo|roll ?back)\b", re.IGNORECASE)
_AGAIN: Final = re.compile(
    r"(?:(?:but|please|sorry)[, ]+)*(?:can|could|would) you (?:please )?(?:check|look|try|verify)(?: \w+){0,2} again\b",
    re.I,
)
"""It does not accept the answer."""
_ACTUALLY: Final = re.compile(r"actually,? i(?:['’]d| would)? (?:like|want|need)\b", re.IGNORECASE)
_CHANGES: Final = re.compile(r"actually\b.*\b(?:prefer|rather|instead)\b", re.IGNORECASE)
"""It cancels what was agreed, even if the agent asked."""
_OWNS_UP: Final = re.compile(
    r"(?:(?:ah|oh|yes|hm+|right|ok|okay|sorry|good point|great point)[,!.— ]+)*(?:you(?:['’]re| are) (?:\w+ )?right\b"
    r"|(?:good|great|nice|excellent) catch\b"
    r"|thank(?:s| you) for (?:pointing|catching|clarifying|the (?:clarification|correction))\b"
    r"|my (?:mistake|bad)\b|(?:i(?:['’]m| am) sorry|sorry|(?:i|my) apologi\w+) for the "
    r"(?:confusion|mistake|error|oversight|misunderstanding)\b|i (?:missed|misread|misunderstood|overlooked)\b)",
    re.IGNORECASE,
)
_OBJECTS: Final = re.compile(r"\b(?:but|not|should|wrong|issue|problem|instead|why)\b|n['’]t\b", re.IGNORECASE)
_PREFERS: Final = phrases(r"i(?:'d| would) (?:rather|prefer)|^(?:\w+,? )?change of plans?")
_NOT_REJECTED: Final = phrases(
    r"""
    ^(?:no|nope)[,.]?\s+that's (?:all|it|fine|ok|okay|good|everything|correct|right)
    ^(?:no|nope)[,.]?\s+(?:thanks?|thank you|problem|worries|need|other|further|more|nothing|i think)
    ^(?:no|nope)[,.]?\s+i(?:'m| am) (?:good|fine|all set)
    ^(?:no|nope)[,.]?\s+(?:not (?:at the moment|right now|for now|needed)|it's (?:fine|ok|all))
    ^no,? (?:i (?:do not|don't|won't) (?:want(?! to be transferred)|need|have)|preference)
    """
)
_ASKS_HOW: Final = re.compile(r"(?:how|what|can|could|is|are|does|where|when|should)\b.*\?$", re.IGNORECASE | re.DOTALL)
_FORBIDS: Final = re.compile(r"(?:please )?(?:don['’]t|do not|never)\b", re.IGNORECASE)
"""In the middle of an order, it limits the next step and rejects nothing."""
_IF_INSTEAD: Final = re.compile(
    r"\b(?:if|whether|could|can|would|is it possible|possible|in case)\b[^.;\n]*\binstead\b|\binstead\b[^.\n]*\?", re.I
)
_SUPPOSES: Final = re.compile(
    r"^(?:if|in case)\b|\b(?:check|see|find out|know) (?:if|whether)\b|\bnext time\b|\bwhat if\b", re.IGNORECASE
)
_AS_INSTEAD: Final = re.compile(r"instead of\b", re.IGNORECASE)
"""A question that starts so asks for another way."""
_SHORT: Final = re.compile(
    r"\b(?:(do|does|did|is|are|was|were|has|have|should|could|would)nt|(that|there|it(?=s (?:not|still|too)\b))s)\b",
    re.IGNORECASE,
)


def find_corrections(turn: TurnBlocks, past_turns: Sequence[HeardTurn]) -> Iterator[Finding]:
    """The user's reaction to what the agent did before: at most one finding. `past_turns` start with the
    oldest."""
    block, start, end = words_of(turn)
    if block is None or not past_turns:
        return
    best: tuple[int, str, Sentence] | None = None
    asked = last_agent_words(past_turns)
    question = _Question(
        bool(ASKED.search(asked[-300:])), bool(ASKS_WHAT.search(asked[-TEXT_MAX:])), is_service(past_turns)
    )
    sentences = sentences_of(block.text[start:end])
    for place, piece in enumerate(sentences[:SENTENCES_MAX]):
        score, kind = max(_score_kinds(piece.text, place, question), default=(0, ""))
        if score and (best is None or score > best[0]):
            best = (score, kind, piece)
    if best is None or best[0] < _SCORE_MIN:
        best = _reaction_by_place(turn, block.text[start:end], sentences, past_turns[-1])
    if best is not None and best[1] != "failure_report" and is_repeated(block.text[start:end], past_turns):
        return  # said before, and shown there
    if best is not None:
        score, kind, piece = best
        yield Finding(kind, block.span(start + piece.start, start + piece.end), score=score)


def reaction_to_refusal(text: str) -> tuple[str, int, int]:
    """The kind of the words with which the user refused a call, and where the sentence is that says it. Whatever they
    are, they ask for another way."""
    sentences = sentences_of(text)
    plain = _Question(is_asked=False, asks_details=False, is_service=False)
    scored = [
        (score, kind, piece)
        for place, piece in enumerate(sentences[:SENTENCES_MAX])
        for score, kind in _score_kinds(piece.text, place, plain)
    ]
    score, kind, piece = max(scored, key=lambda found: found[0], default=(0, "", None))
    if piece is not None and score >= _SCORE_MIN:
        return kind, piece.start, piece.end
    return ("redirect", sentences[0].start, sentences[0].end) if sentences else ("redirect", 0, len(text))


def spelled_out(text: str) -> str:
    """A sentence with the apostrophes that people leave out."""
    return _SHORT.sub(lambda m: f"{m[1]}n't" if m[1] else f"{m[2]}'s", text)


def _reaction_by_place(
    turn: TurnBlocks, words: str, sentences: Sequence[Sentence], before: HeardTurn
) -> tuple[int, str, Sentence] | None:
    """A reaction that the words alone do not show: a log with an error after work, words in place of a call that the
    user did not let run, or a mistake that the agent then admits."""
    error = ERROR_LINE.search(words[:TEXT_MAX]) if before.has_work else None
    if sentences and (error or _PASTED.match(words[:TEXT_MAX])):
        sentence = next((s for s in sentences if error and s.start <= error.start() < s.end), sentences[0])
        return _SCORE_MIN, "failure_report", sentence
    if sentences and _MOVES_ON.match(sentences[0].text):
        return None
    if sentences and before.is_rejected:
        return _SCORE_MIN, "redirect", sentences[0]
    statements = [s for s in sentences if "?" not in s.text[-3:]]
    objects = [s for s in statements if _OBJECTS.search(s.text)]
    if len(statements) == len(sentences):
        objects += statements  # with a question, the agent may only say that it is a good one
    return (_SCORE_MIN, "correction", objects[0]) if objects and _agent_admits_mistake(turn) else None


def _agent_admits_mistake(turn: TurnBlocks) -> bool:
    """Whether the agent treats the user's words as a correction: it starts with "you are right" or "I was wrong"."""
    said = next((b.text for b in turn.blocks if isinstance(b, SpokenText) and b.who == "agent"), "")
    return any(_OWNS_UP.match(s.text) for s in sentences_of(said)[:2])


def _is_shouted(text: str) -> bool:
    """Whether a statement is all in capitals, and not out of joy."""
    is_loud = len(text) in SHOUTED and text.isupper() and len(text.split()) > 2
    return is_loud and "?" not in text and not _PLEASED.match(text)


class _Question(msgspec.Struct):
    """What the agent asked last: whether it did, whether it asked for details, and whether it is a service."""

    is_asked: bool
    asks_details: bool
    is_service: bool


def _score_kinds(text: str, place: int, question: _Question) -> Iterator[tuple[int, str]]:
    """A score for each kind that matches. A "no" to a question of the agent is primarily an answer, unless a coding
    agent is told why, or what to do."""
    is_answer, text = question.is_asked, spelled_out(text)
    if place < 2 and (_AGAIN.match(text) or _UNDOES.match(text)):
        yield 3, "correction"
    if _ASKS_HOW.match(text) and not _AS_INSTEAD.match(text):
        return
    if _FAILS.search(text) and not _SUPPOSES.search(text):
        yield (3 if place < 3 or _TURNS.match(text) else 1), "failure_report"
    is_later_no = place > 1 and bool(_NO.match(text))  # in a list of wishes, it is one of them
    if _REJECTS.search(text) and not is_later_no and not (place == 0 and _NOT_REJECTED.search(text)):
        is_no = bool(_NO.match(text)) or not _REJECTS.search(_WANT.sub(" ", text))
        is_limit = bool(_FORBIDS.match(text)) and (place > 0 or " yet" in text)
        is_plain_no = is_no and (is_answer or text.count(" ") < 2)
        is_plain_no = is_plain_no and (question.is_service or text.count(" ") < NO_WORDS)
        yield (1 if is_limit or is_plain_no else 3), "correction"
    if place < 3 and not question.is_service and _TOO_MUCH.search(text) and not _SUPPOSES.search(text):
        yield 3, "correction"
    if place == 0 and not question.is_service and _is_shouted(text):
        yield 3, "correction"
    if place == 0 and not is_answer and not question.is_service and _OUGHT.match(text) and not text.endswith("?"):
        yield 3, "redirect"
    if _DOUBTS.match(text) or _MOVES_ON.match(text):
        return
    if _REDIRECTS.search(text) and (_AS_INSTEAD.match(text) or not _IF_INSTEAD.search(text)):
        is_plain = bool(_PREFERS.search(text)) and not _CHANGES.match(text)
        is_plain = is_plain or (question.asks_details and bool(_ACTUALLY.match(text)))
        yield (1 if place > 1 or (is_answer and is_plain) else 3), "redirect"
