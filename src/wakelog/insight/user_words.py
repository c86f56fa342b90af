"""Finds the goal that the user's own words set, without the wrappers of a prompt (wrappers.py).

Words that only agree, say to continue, or answer the agent's question set no new goal: the earlier one is carried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wakelog.insight.blocks import Finding, SpokenText, TextSpan, TurnBlocks
from wakelog.insight.dialogue import HeardTurn, is_only_answer, is_service, last_agent_words
from wakelog.insight.sentences import TEXT_MAX, content_words, sentences_of
from wakelog.insight.statements import ORDERS, PART, is_question
from wakelog.insight.wrappers import own_words

ANSWER_MAX: Final = 100
"""How long the answer to a coding agent's question may be, in characters."""
STATEMENT_MAX: Final = 300
"""How long it may be if it requests nothing."""

_AGREES: Final = re.compile(
    r"(?:(?:yes|yep|yeah|yup|ok|okay|sure|great|perfect|good|nice|cool|right|correct|exactly|fine|alright|thanks"
    r"|thank you"
    r"|please|pls|plz|lgtm|sounds good|looks good|that works|agreed|absolutely|of course|got it|no problem|hi|hello"
    r"|hey|understood|done|i (?:see|understand)(?=\s*(?:[,.!]|$)))\b[\s,.!]*)+",
    re.IGNORECASE,
)
_COURTESY: Final = re.compile(
    r"(?:(?:oh|well|actually|great|perfect|wonderful|awesome|ok|okay|yes|no|and|so)[,!. ]+)*"
    r"(?:(?:that|this|it|everything|all)(?:['’]s| is| looks| sounds| was| seems| works)?(?: (?:all|very|really"
    r"|just))*"
    r" (?:great|good|perfect|fine|correct|right|wonderful|awesome|excellent|nice|ok|okay|clear|lovely|amazing|well)\b"
    r"(?:[,.! ]+thank[^.?!]*|(?: (?:to|for) me)?)"
    r"|(?:many |thank|cheers)\w*\b[^?]{0,80}|i(?:['’]m| am)? (?:really |truly |so |very )*(?:appreciate|grateful|glad"
    r"|happy|sorry|apologi[sz]e)\b[^.?!]{0,60}|have a \w+[^.?!]{0,25}|talk (?:soon|later)[^.?!]{0,20}"
    r"|see you[^.?!]{0,20}"
    r"|(?:good)?bye[^.?!]{0,20}|take care[^.?!]{0,20}|(?:that['’]s|that is|it['’]s) all[^.?!]{0,40}|i understand"
    r"|i see|got it|understood|found it|(?:thanks?|thank you)?[,! ]*you too\b[^.?!]{0,30}|never ?mind|no worries"
    r"|(?:wow|wonderful|awesome|amazing|excellent|brilliant|fantastic)\b"
    r"(?![^.?!]*\b(?:now|can|could|please|let|but|next|then)\b|[,! ]+(?:and |so )?(?:add|make|fix|run|use|do|go)\b)"
    r"[^.?!]{0,120}"
    r"|i (?:hope|guess)\b[^.?!]{0,60}|(?:i think )?that(?:['’]s| is| will be) all\b[^.?!]{0,40})[.! ]*",
    re.IGNORECASE,
)
"""A sentence that thanks, greets, praises or regrets, and asks for nothing."""
_PROMISE: Final = re.compile(
    r"(?:(?:ok|okay|oh|great|alright|sure|got it|understood|thanks|thank you|then|well)[,!. ]+)*i(?:['’]ll"
    r"| will|['’]m going to) "
    r"(?:be|definitely|try|check|find|look|get|gather|make sure|reach|contact|provide|keep|let you|see|work|do that"
    r"|think|wait|come back|hold off)\b[^?]*",
    re.IGNORECASE,
)
"""What users say they will do themselves."""
_INSISTS: Final = re.compile(
    r"(?:(?:ok|okay|alright|well|but|and|please|so)[, ]+)*"
    r"(?:i (?:do )?(?:understand|appreciate|see|know)\b[^.?!]{0,80}\bbut\b|i(?:['’]m| am)? (?:really|still|just) \w+"
    r"|(?:can|could|would) you (?:please |at least |just |really )*(?:check|try|look|double[- ]check|make an exception)"
    r" ?(?:again|once more|if there|whether there|for me)?\b|are you (?:absolutely )?sure"
    r"|is(?:n['’]t| not)? there (?:really |truly |absolutely )*(?:any|no|some)\w*(?: \w+){0,2}"
    r" (?:way|exception|possibility|option|chance|workaround|(?:you|we) (?:can|could))"
    r"|i(?:['’]m| am) sure|that can['’]t be"
    r"|(?:in that case,? )?(?:can|could) (?:anything|something)(?: else)? be done\b"
    r"|if there(?:['’]s| is) (?:any|some|anything)\b|is there anything else (?:i|we) (?:should|need|can|could|might)\b"
    r"|(?:(?:can|could) you (?:please )?tell me )?what (?:are )?(?:my|the) (?:other )?(?:options|alternatives)\b)",
    re.IGNORECASE,
)
"""A sentence that asks for the same again."""
_TELLS: Final = re.compile(
    r"(?:(?:ok|okay|oh|hi|well|sure|yes|no|sorry|unfortunately|and|but|so|great"
    r"|i apologi[sz]e(?: for \w+)?|i(?:['’]m| am) (?:really |so )?sorry(?: about \w+)?)[,!. ]+)*"
    r"(?:i (?:really )?(?:do not|don['’]t|can['’]t|cannot|couldn['’]t) (?:have|remember|recall|find|know)\b[^.?!]*"
    r"|i(?:['’]m| am) (?:not sure|unsure|afraid i don['’]t)\b[^.?!]*"
    r"|here(?:['’]s| is| are) (?:(?:the|my|some|more|all|a bit|of|an?|additional|full|new) )*"
    r"(?:context|info\w*|details?|output|results?|logs?|files?|screenshots?)\b[^?:]{0,40}"
    r"|my [\w ]{2,30} (?:is|are|was|should be)\b:?[^?]*|(?:it|that)(?:['’]s| is) \S*[\d_]\S*[.! ]*)"
    r"(?:,? (?:but |and |so )?(?:(?:can|could|would) you (?:please |still )+|is it (?:still )?possible to )"
    r"[^.?!]*\?)?[.! ]*"
    r"|(?:can|could|would) (?:you|we) (?:please )?(?:still"
    r"|(?:help|proceed|look it up)(?: me)? with (?:just|only)) ?[^.?!]*\?"
    r"|(?:can|could|would) you (?:please )?(?:hold on|wait|give me (?:a|one) (?:moment|minute|second))\b[^.?!]*[.?!]*",
    re.IGNORECASE,
)
"""A sentence that gives the agent a detail, such as a number, or says that the user does not know it."""
_GO_ON: Final = re.compile(
    r"(?:(?:please|then|now|and|just|let['’]?s|you can|(?:can|could) (?:you|we)|you may|i(?:['’]d| would) like to"
    r"|in that case,?|so)\s+)*"
    r"(?:please )?(?:go ahead|continue|proceed|move forward|go on"
    r"|keep going|do (?:it|that|this|so)|carry on|go for it|resume|try again|retry|i confirm|confirmed|make it so"
    r"|implement it|apply it"
    r"|let['’]?s(?= *[.!]?$))\b"
    r"(?:\s+(?:with|and)\s+(?:(?:do|make|apply|implement|fix|build|add) )?(?:that|this|it|the|these|those|your"
    r"|everything|all)\b[^.?!\n]{0,60}|\s+(?:please|now"
    r"|then))?[\s.!?]*",
    re.IGNORECASE,
)
ASKED: Final = re.compile(
    r"\?(?=[\s)\"'*]|$)|\bplease (?:provide|confirm|let me know|tell|share|reply|choose|specify|select|verify)"
    r"|\blet me know\b"
    r"|\bcould you (?:please )?(?:provide|confirm|tell|share|specify)|\bI(?:'ll| will) need (?:your|the|to know)"
    r"|\bonce (?:I have|you (?:provide|have|confirm|share))\b",
    re.IGNORECASE,
)
_OFFER: Final = re.compile(
    r"(?:\b(?:just |please )*let me know )?\b(?:if|whenever) (?:you(?:['’]d| would)?|there(?:['’]s| is))"
    r" (?:still )?(?:need|have|like|want|encounter|run into|hit|face|see|anything|any)\b[^.?!]*[.?!]?"
    r"|feel free to[^.?!]*[.?!]?|(?:is there )?anything else[^.?!]*[.?!]?",
    re.IGNORECASE,
)
"""A closing phrase of an agent that asks for nothing in particular."""
_REQUEST: Final = re.compile(
    r"\b(?:can|could|would|will) (?:you|u|we|i)\b|\bdo (?:you|u)\b"
    r"|\bi (?:also )?(?:need|want) you\b|\bis (?:it|there)\b|\bare there\b|\bhow (?:do|can|about|much|many"
    r"|long)\b|\bwhat\b"
    r"|\bwhy\b"
    r"|\blet'?s\b|\bshould\b|\binstead\b|\balso\b|(?:^|[.!] +)now\b|\bactually\b"
    r"|(?:^|[.!?,;:] +|\band |\bthen |\bplease )(?:make|add|remove|change|fix|cancel|book|create|run|update"
    r"|write|use|try"
    r"|move|rename|delete|implement|commit|push|show|give|check|test|do)\b",
    re.IGNORECASE,
)
_SHOULD: Final = re.compile(r"^(?:it|they|that|this|i) should\b", re.IGNORECASE)
"""The answer to a question about what should be."""
_TURNS: Final = re.compile(
    r"^but\b|\binstead\b|\balso\b|\bactually\b|\bneither\b|\bnone of\b|(?:^|[.!?]\s+)(?:what|why|how|where|when|who"
    r"|which)\b[^.!]*\?"
    r"|\bone more\b|\banother (?:thing|question)\b|\bi think\b|\bwe should\b",
    re.IGNORECASE,
)
_OWN_WISH: Final = re.compile(
    r"\bi(?:['’]d| would)? (?:also )?(?:like|want|need|wish) to (?!know|confirm|proceed|ask|make sure)\w+|\bhelp me\b"
    r"|\b(?:one|another) (?:more|other)\b|\bnew\b|\binstead\b|\bneither\b",
    re.IGNORECASE,
)
"""It asks for something beyond what was agreed."""
_NUDGES: Final = re.compile(
    r"(?:(?:ok|okay|yes|pls|plz|please|great|good|now|and|then|so|let['’]?s|you can)[,.! ]+)*"
    r"(?:(?:start|begin|implement|execute|apply|do)(?: with)?(?: (?:the|this|that|your|these|those|all|of|it|them))*"
    r"(?: (?:implementation|implementing|coding|plan|changes|fix(?:es)?|proposal|suggestions?|recommendations?))?"
    r"(?: as (?:specified|planned|described|proposed|discussed|is))?"
    r"|pls|plz|next(?: (?:one|step|task|please))?|go(?: go)*|let['’]?s go|y|n|k|ty|thx|\d{1,2}|[a-d]"
    r"|(?:option|choice) \w{1,2}"
    r"|and|again|ready|both|all(?: of (?:them|it|these))?|the (?:first|second|third|last|latter|former)(?: one)?"
    r"|approved?|accept(?:ed)?|finish(?: (?:it|up|this))?|ship it|wait|hold on|(?:just )?(?:one"
    r"|a) (?:sec|second|moment"
    r"|minute)|(?:wait,? )?let me (?:respond|answer|think|check|see|try|finish)(?: (?:it|that|this|first))?"
    r"|(?:pick up|continue|resume) (?:from )?where (?:you|we) (?:left off|stopped)"
    r"|(?:are )?you(?: still)? (?:there|alive|stuck|ok(?:ay)?)|still (?:there|here|working)|done|ready)"
    r"(?: please| pls| now| then)?[\s.!?]*",
    re.IGNORECASE,
)
"""A word or two that ask for nothing new."""
_GREETS: Final = re.compile(
    r"(?:(?:hi|hey|hello|hiya|good (?:morning|afternoon|evening)|yo)(?: there| all| again)?[\s,.!]*)+", re.IGNORECASE
)
_PROMPTED: Final = re.compile(
    r'(?:Continue|Pause): "Continue to iterate\?"'
    r"|Implement the plan as specified, it is attached for your reference\b.*",
    re.DOTALL,
)
"""The words of an editor's button."""
_OUTPUT: Final = re.compile(
    r"(?!.*(?:\b(?:error|fail|exception|traceback|warning)|\?))"
    r"(?:(?:PS )?[A-Z]:\\[^\n>]*>.*|(?:[\w.@:~/-]*[\w~/])?\$ \S.*|\{.*\}|\[\s*[\"'\d{\[-].*\])",
    re.IGNORECASE | re.DOTALL,
)
"""What a command or a program showed, without a word about it, and without an error."""
_CHOOSES: Final = re.compile(r"\?|\b(?:but|only|and|first)\b", re.IGNORECASE)
"""What is more than a yes to an offer, though all its words are from there."""
_PICKS: Final = re.compile(
    r"(?:let['’]?s |i(?:['’]ll|['’]d)? |we(?:['’]ll)? )?(?:go (?:with|for)|choose|pick|take|opt for|option)\b",
    re.IGNORECASE,
)
"""It takes one of the ways that the agent named."""
_ASKS_THEN: Final = re.compile(r"(?:(?:so|and|but) )?(?:(?:can|could|would|will) (?:you|we)\b|please\b)", re.IGNORECASE)
_PUBLISHES: Final = re.compile(r"(?:(?:and|now|then),? )*(?:push|commit|merge|deploy|release|publish)\b", re.I)
"""An order that is never only an answer."""
_MENTION: Final = re.compile(r"(?:^|\s)@[\w./\\:~-]+")
"""A file or an agent that a prompt refers to."""
_TAIL: Final = re.compile(
    r"(?:that'?s (?:all|everything)|no more|nothing else|so much|very much|^for (?:your|the|all|that|this|\w+ing)\b"
    r"|i(?:['’]m| am) all set|work$|job$)[^.?!]*[.!]?",
    re.I,
)


def continues_goal(words: str, asked: str, *, is_service: bool) -> bool:
    """Whether the words only agree, thank, tell the agent to continue, or answer what it `asked` last. Long words to a
    coding agent, and questions, are an order of their own, also if they answer something."""
    words = words[:TEXT_MAX] if is_service else _MENTION.sub(" ", words[:TEXT_MAX]).strip()
    if _PROMPTED.fullmatch(words) or _NUDGES.fullmatch(words):
        return True
    if not is_service and _OUTPUT.fullmatch(words) and not ORDERS.match(words.rpartition("\n")[2].strip()):
        return True
    rest = _AGREES.match(words)
    left = words[rest.end() :] if rest else words
    if rest and _NUDGES.fullmatch(left):
        return True
    going = _GO_ON.match(left)
    left = left[going.end() :] if going else left
    left = "\n".join(s.text for s in sentences_of(left) if not _asks_nothing(s.text, is_service=is_service))
    left = _TAIL.sub("", left.strip(" \n.!,")).strip(" \n.!,")
    if not re.search(r"\w", left) or _AGREES.fullmatch(left + " "):
        return True
    if going and len(left) < 40 and not (is_question(left) or _OWN_WISH.search(left)):
        return True
    if going and rest and ASKED.search(asked[-400:]) and not (_OWN_WISH.search(left) or ORDERS.match(left)):
        return True  # the agent asked whether to go ahead, so the goal is the agreed one
    if _PICKS.match(left) and content_words(left) & content_words(asked) and not _CHOOSES.search(left):
        return True
    if not ASKED.search(_OFFER.sub(" ", asked[-400:])) or _TURNS.search(left):
        return False
    # The agent asked. Words about its question, and words that request nothing, are the answer.
    own = content_words(left)
    if len(left) <= ANSWER_MAX and _is_agreed(left, own, asked, is_yes=rest is not None):
        return True
    requests = _REQUEST.search(_SHOULD.sub("", left) if "should" in asked[-400:] else left)
    limit = ANSWER_MAX if requests else STATEMENT_MAX
    if not is_service and (is_question(left) or len(left) > limit or _OWN_WISH.search(left)):
        return False
    if not is_service and _is_order(left, own):
        return False
    if not own or (ORDERS.match(left) and (rest is None or "please" not in rest[0].lower())):
        return not own
    return len(own & content_words(asked)) >= 0.45 * len(own) or not requests


def _is_agreed(words: str, own: frozenset[str], asked: str, *, is_yes: bool) -> bool:
    """Whether an answer says again what the agent offered: all its words; after a "yes" its verb, and one thing."""
    known, order = own & content_words(asked), ORDERS.match(words)
    if not known or _CHOOSES.search(words):
        return False
    is_same = order is not None and order[0].rsplit(" ", 1)[-1].lower() in asked.lower().split()
    return known == own or (is_yes and is_same)


def _is_order(words: str, own: frozenset[str]) -> bool:
    """Whether words tell a coding agent to do something, in any of their sentences."""
    if _PUBLISHES.match(words):
        return True
    return len(own) > 1 and any(ORDERS.match(part) for part in PART.split(words))


def _asks_nothing(sentence: str, *, is_service: bool) -> bool:
    """Whether a sentence sets no goal: it is polite, says to continue, promises, or insists. What is long and asks a
    coding agent for something is an order."""
    if not is_service and len(sentence) > ANSWER_MAX and _REQUEST.search(sentence):
        return False
    if (
        not is_service
        and sentence[:2].lower() == "i "
        and any(_ASKS_THEN.match(part) for part in PART.split(sentence)[1:])
    ):
        return False  # it tells something, and then requests something
    if any(pattern.fullmatch(sentence) for pattern in (_COURTESY, _GO_ON, _PROMISE, _TELLS)):
        return True
    return bool(_INSISTS.match(sentence)) and not _TURNS.search(sentence.removeprefix("but "))


def find_goal(turn: TurnBlocks, earlier: Finding | None, heard: Sequence[HeardTurn] = ()) -> Finding | None:
    """The goal of a turn: the user's words, or the `earlier` goal if they only continue it. `heard` are the turns
    before, the oldest first."""
    block, start, end = words_of(turn)
    if block is None:
        return None
    if earlier is None and _GREETS.fullmatch(block.text, start, end):
        return None
    if earlier is None and not heard and _NUDGES.fullmatch(block.text, start, end):
        return None
    if earlier is not None or heard:
        words, asked = block.text[start:end], last_agent_words(heard)
        is_asked = bool(ASKED.search(_OFFER.sub(" ", asked[-400:])))
        if (
            is_repeated(words, heard)
            or continues_goal(words, asked, is_service=is_service(heard))
            or is_only_answer(words, heard, is_asked=is_asked)
        ):
            return carried(block.span(start, end), earlier)
    return Finding("goal", block.span(start, end))


def carried(span: TextSpan, earlier: Finding | None) -> Finding:
    """Words that continue the `earlier` goal."""
    goal = (earlier.reason or earlier.span) if earlier is not None else None
    return Finding("goal", span, reason=goal, detail="carried")


def is_repeated(words: str, heard: Sequence[HeardTurn]) -> bool:
    """Whether the user said the same in one of these turns already."""
    return any(words.strip() == turn.user.strip() for turn in heard)


def words_of(turn: TurnBlocks) -> tuple[SpokenText | None, int, int]:
    """The first text of a turn with the user's own words, and their range in it."""
    for block in turn.blocks:
        if isinstance(block, SpokenText) and block.who == "user":
            start, end = own_words(block.text)
            if start < end:
                return block, start, end
    return None, 0, 0
