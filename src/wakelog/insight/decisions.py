"""Decisions: sentences in which the agent commits to one way, ranked by how much speaks for each.

What speaks for a sentence: it commits to a change, compares or prefers, gives a reason, and an effect follows it. What
speaks against: it announces a routine step (look, run the tests, commit), repeats what was asked, or sums up at the
end. The best sentence of each text is a candidate; candidates that stand for one choice (thinking, text and call of it,
or the same words again) are merged, and the best one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.insight.acts import Act, act_of, is_refused
from wakelog.insight.blocks import Block, Did, Finding, TextSpan, TurnBlocks, Words
from wakelog.insight.sentences import Sentence, content_words, is_english, sentences_of

DEFAULT_SCORE: Final = 5
"""From here on a decision is shown by default."""
LONG: Final = 1000
LEAST_SCORE: Final = 3
"""Below this it is not kept at all."""

_CHANGE: Final = (
    r"(?:add|remov|chang|us|fix|replac|keep|kept|revert|restor|skip|install|creat|implement|refactor|renam|mov|split"
    r"|switch|drop|delet|extract"
    r"|simplif|reus|wrap|convert|support|includ|exclud|ignor|disabl|enabl|set|mak|put|return|avoid|leav|rewrit"
    r"|wr[io]t|writ|patch|updat"
    r"|modif|adjust|clean|introduc|bump|pin|merg|inlin|pass|cach|stream|limit|handl|treat|store|rely|go with|stick"
    r"|opt|choos|chose|pick|prefer"
    r"|try|attempt|recover|comput|cancel|book|transfer|offer|refund|decline|deny|escalat|stop|brute|encod|decod"
    r"|hardcod|mock|default|request|ask|ensur|appl|defin|declar|register|expos|separat|combin|group|hid|increas"
    r"|decreas|rais|lower|allow|block|defer"
    r"|postpon|escap|sanitiz|validat|normali[sz]|filter|guard|retr|catch|forc|append|insert|swap|restrict|preserv"
    r"|mirror|follow|match|delegat|target|focus|downgrad"
    r"|upgrad|overrid|subclass|monkeypatch|bypass|isolat|consolidat|unif|centrali[sz]|migrat|truncat|shorten"
    r"|proceed with|fall back|swap|rebuild|recreat|regenerat|invert)\w*"
)
_COMMITS: Final = re.compile(
    rf"\b(?:I(?:'|’)ll|I will|let me|let(?:'|’)s|I(?:'|’)m going to|I am going to|we(?:'|’)ll|we will|I(?:'|’)d"
    rf"|going to)"
    rf"(?: \w+){{0,3}}? {_CHANGE}\b"
    rf"|\b(?:I|we)(?: \w+)? (?:should|need to|must|have to|want to|can|could|might want to|plan to|decided to"
    rf"|chose to|had to)"
    rf"(?: \w+){{0,4}}? {_CHANGE}\b"
    rf"|\b(?:I|we)(?:(?:'|’)m| am|(?:'|’)re| are) (?:planning|aiming|going|switching|moving|choosing|using|opting"
    rf"|keeping|adding|removing)\b"
    rf"|\b(?:planning|aiming|preparing|plan is) to (?:\w+ )?{_CHANGE}\b|\b(?:needs? to|must|has to|have to"
    rf"|ought to) (?:\w+ )?be \w+(?:ed|t|n)\b"
    r"|^(?:using|keeping|switching|going|choosing|moving|adding|removing|skipping|leaving|reverting|replacing"
    r"|splitting|falling back|opting|sticking)\b"
    r"|\b(?:I|we) (?:can|could) (?:just|simply|instead|safely)\b|\bthe (?:key|trick|idea|plan|goal here) is to\b",
    re.IGNORECASE,
)
_DID: Final = re.compile(
    r"\b(?:I|we)(?:(?:'|’)ve| have)?(?: \w+)?? (?:added|removed|changed|used|fixed|replaced|kept|reverted|restored"
    r"|skipped|created"
    r"|implemented|refactored|renamed|moved|switched|dropped|deleted|extracted|simplified|reused|chose|decided"
    r"|went with|left|cleaned"
    r"|made|set|put|avoided|opted|rewrote|updated|disabled|enabled|limited|split|preserved|stuck)\b"
    r"|^(?:also )?(?:added|removed|changed|used|replaced|kept|reverted|skipped|renamed|moved|switched|dropped"
    r"|simplified|reused|left|made|split) (?:the|it|a|an|\w+)\b",
    re.IGNORECASE,
)
_FIX: Final = re.compile(
    r"\b(?:the|my|a|one|best|right|proper|correct|simplest|real|actual|suggested) (?:fix|solution|approach|way"
    r"|option|answer|plan|strategy|idea|workaround)"
    r"(?: here| forward| for (?:this|that))?(?: is|'s|:| would be| will be| was)(?: \w+)? (?:to|logically)\b"
    r"|\bto (?:fix|solve|resolve|address|handle) (?:this|that|the|it)\b"
    r"|\bmakes? (?:more )?sense to\b|\bit(?:'s| is| would be) (?:a good idea|better|best|safer|simpler|easier"
    r"|cleaner|prudent) to\b",
    re.IGNORECASE,
)
_STRONG: Final = re.compile(
    r"\binstead\b|\brather than\b|\bsimplest\b|\bsimpler\b|\bbetter\b|\bbest\b|\bsaf(?:er|est)\b|\bto be safe\b"
    r"|\bjust in case\b|\bcleaner\b|\bcleanest\b"
    r"|\brecommend\w*\b|\bprefer\w*\b|\bdecid\w+\b|\bchoos\w+\b|\bchose\b|\bopt(?:ed|ing)? (?:for|to)\b"
    r"|\bgo(?:ing)? with\b|\bwent with\b|\bstick(?:ing)? (?:with|to)\b"
    r"|\bkeep(?:ing)? (?:it|the|this|that|both|things|backwards?)\b|\bleav(?:e|ing) (?:it|the|this|that)\b"
    r"|\bwithout (?:having|needing|chang|modify|break|touch|add)\w*"
    r"|\bmore (?:robust|efficient|reliable|accurate|consistent|direct|targeted|focused|appropriate|idiomatic"
    r"|explicit)\b|\bminimal\b|\bno need to\b|\bnot (?:going|supposed) to\b"
    r"|\bsafe(?:ly)? (?:to )?(?:remov|delet|drop|chang|replac|ignor|skip)\w*\b|\bfrom scratch\b|\bafter all\b"
    r"|\bproperly\b|\bshould(?:n't| not)\b|\bonly (?:need|want|include|change|add|use)\b|\bon the other hand\b"
    r"|\btrade-?off\b|\balternative\w*\b|\boverkill\b|\bout of scope\b|\bas well\b",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"\bbecause\b|\bsince\b|\bso that\b|\bto avoid\b|\bto ensure\b|\bto prevent\b|\bto keep\b|\bto make sure\b"
    r"|\bto be safe\b|\bin order to\b|\bjust in case\b"
    r"|\b(?:,|;) so\b|, so \b|\bso (?:we|I|it|that|the|they|users?)\b|^so\b|\botherwise\b|\bas (?:it|this|that|they"
    r"|the|we|I)(?: \w+)? (?:is|are|was|does|do|did|would|will|can|only|already|prevents|allows|has|have)\b"
    r"|\bwhich (?:would|will|means|is|allows|avoids|makes|causes|breaks|prevents|should|keeps)\b|\bthis (?:way|would"
    r"|will|avoids|allows|ensures|keeps|makes|provides|should|means|prevents)\b"
    r"|\bdue to\b|\bthat(?:'s| is) why\b|\bgiven (?:that|the|this)\b|\bthe reason\b|\bneeded (?:for|to)\b"
    r"|\bfor (?:consistency|safety|clarity|simplicity|performance|compatibility)\b"
    r"|\bwithout (?:breaking|changing|having|needing)\b|\bhelps? (?:to|in|with|us)\b|\bavoids?\b|\baims? to\b"
    r"|\bnot (?:possible|available|allowed|supported)\b"
    r"|[—–] (?:these|this|it|they|that|the)\b| - (?:these|this|it|they|that|the)\b",
    re.IGNORECASE,
)
_DIAGNOSIS: Final = re.compile(
    r"\bfound (?:it|the (?:bug|issue|problem|cause|root cause))\b|\broot cause\b|\bthe (?:issue|problem|bug|cause"
    r"|error|culprit|reason)(?: here)? (?:is|was|lies|must be|comes)\b"
    r"|\bcaused by\b|\bthis (?:is because|causes|caused|happens because|explains|means that)\b|\bI (?:see|understand"
    r"|know) (?:the|what the|why)\b|\bturns out\b"
    r"|\b(?:is|are|was|were)(?: not|n't) (?:in|being|set|called|handled|included|checked|passed|defined|exported"
    r"|imported)\b|\bmissing\b|\bcurrently\b|\bonly (?:includes?|checks?|handles?|supports?)\b"
    r"|\bcan lead to\b|\bleads to\b|\binefficient\b|\bincorrect(?:ly)?\b",
    re.IGNORECASE,
)
_PROPOSES: Final = re.compile(
    r"\bI(?:(?:'|’)d| would)? (?:recommend|suggest|propose|advise|argue|lean)\b|\bmy (?:recommendation|suggestion"
    r"|proposal|preference)\b|\brecommend(?:ation|ed)?\b"
    r"|\bmy (?:instinct|take|advice|view|vote)\b|\bwould probably be\b|\bI(?:'|’)d wait\b|\bthe approach would be\b"
    r"|\bpropos(?:ed|al|e)\b|\bI(?:(?:'|’)d| would) (?:say|go|keep|leave|use|add|start|prefer|rather|do)\b"
    r"|\bwould be (?:better|best|safer|simpler|cleaner)\b"
    r"|\b(?:can(?:no|'|’)t|cannot|am unable to|not able to|is not possible|not eligible|not allowed)\b",
    re.IGNORECASE,
)
_ROUTINE: Final = re.compile(
    r"\b(?:let me|let's|let’s|I'll|I’ll|I will|I need to|I should|we should|we need to|I want to|we can|now|going to"
    r"|next|first|then|also|start by|begin by|prudent to|plan to)"
    r"(?: (?:also|now|first|just|then|quickly|start by|begin by|try to|need to|can|should|simply|carefully|probably"
    r"|go and|take a|have a))*"
    r" (?:read|look\w*|check\w*|see|explor\w*|search\w*|find|list\w*|examin\w*|investigat\w*|review\w*|inspect\w*"
    r"|verif\w*|confirm\w*|understand|view|open|navigat\w*"
    r"|run(?:ning)?|test(?:ing)?|re-?run|commit\w*|stage|push|submit\w*|summari[sz]e|provide|trac\w+|get|fetch|grep"
    r"|locate|analy[sz]e|dig|re-?read|double[- ]check"
    r"|show|think|clean ?up|continue|proceed|mark|update (?:the|my) (?:todo|plan)|execut\w*|present|report|ask|wait"
    r"|compar\w+|re-?evaluate|reproduc\w+|build)\b",
    re.IGNORECASE,
)
_CLEANUP: Final = re.compile(
    r"\bno longer needed\b|\bclean(?:ing)? ?up\b|\btemporary (?:file|script)|\b(?:remove|delete) (?:the "
    r"|my )?(?:reproduc\w+|test script|debug)|\bunused import|\bformatting\b|\btypo\b"
    r"|\b(?:syntax|indentation|quoting|escaping) (?:error|issue|problem)?|\bproper indentation\b|\bwith tabs\b"
    r"|\blint(?:er|ing)?\b|\bI apologi[sz]e\b|\btry again\b|\bcommit(?:ted)? (?:the|these|my|all) changes\b"
    r"|\ball (?:the )?tests pass\b",
    re.IGNORECASE,
)
_REPEATS: Final = re.compile(r"^(?:now|next|then|also|finally|similarly|likewise)\b[, ]", re.IGNORECASE)
_TESTING: Final = re.compile(
    r"\btests?\b(?! (?:suite|runner|data))|\bspec\b|\breproduc\w+|\bverif\w+_?\w*\.py", re.IGNORECASE
)
_ASKS: Final = re.compile(r"\?\s*[)\"'*]*$")
_DOUBTS: Final = re.compile(
    r"^(?:wait|hmm|maybe|perhaps|what if|or maybe|actually, wait|but wait|could it be|is it)\b|\bI wonder\b"
    r"|\bor maybe\b",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"^(?:if|when|unless) (?:you|the user|they)\b|\blet me know\b|\bwould you like\b|\bplease (?:let|provide"
    r"|confirm)\b|\bfeel free\b",
    re.IGNORECASE,
)
_SUMMARY: Final = re.compile(
    r"^(?:done|perfect|great|excellent|summary|all (?:tests|done|set|changes)|the (?:fix|task|implementation"
    r"|changes?|work) (?:is|are|has been) (?:now )?(?:complete|done|in place)"
    r"|here(?:'|’)s (?:a|the|what)|I(?:'|’)ve (?:successfully|completed|now)|successfully|everything|final)\b",
    re.IGNORECASE,
)
_RETELLS: Final = re.compile(
    r"(?:so |but |and |okay,? |ok,? |now |here )*(?:the|this) (?:user|pr|issue|task|description|problem statement"
    r"|message|error|output|question)(?: description| message)?"
    r"(?: \w+)? (?:wants?|asks?|is asking|mentions?|suggests?|says|said|points?|is pointing|notes?|is noting"
    r"|reports?|shows?|indicates?|states?|requires?|needs?|would like)\b"
    r"|they(?:'re| are)? (?:want|ask|asking|noting|saying|mention)\w*\b|the suggested fix\b|as (?:suggested"
    r"|requested|expected)\b",
    re.IGNORECASE,
)
_ANNOUNCES: Final = re.compile(r"(?:now |first,? |next,? )?(?:let me|let(?:'|’)s|I(?:'|’)ll|I will)\b", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[`*_]")


class Candidate(msgspec.Struct):
    """A sentence that may be a decision, and what it leads to."""

    place: int
    """Its text's place in the turn."""
    said: Words
    sentence: Sentence
    signs: frozenset[str]
    reason: Sentence | None
    effect: Did | None
    batch: int
    words: frozenset[str]

    @property
    def score(self) -> int:
        return sum(WEIGHTS.get(sign, 0) for sign in self.signs)


WEIGHTS: Final = {
    "commits": 1,
    "did": 2,
    "fix": 3,
    "strong": 1,
    "proposes": 2,
    "reason": 2,
    "reason beside": 1,
    "diagnosis": 2,
    "effect": 2,
    "effect later": 1,
    "long text": 1,
    "states": -2,
    "announces": -1,
    "routine": -3,
    "cleanup": -2,
    "repeats": -2,
    "testing": -3,
    "doubts": -2,
    "summary": -1,
}
"""What each sign adds to a score."""


def find_decisions(turn: TurnBlocks) -> list[Finding]:
    """The decisions of a turn, the surest first."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates_in(turn.blocks), key=lambda c: (-c.score, c.place)):
        if candidate.score >= LEAST_SCORE and not any(_is_same(candidate, other) for other in kept):
            kept.append(candidate)
    return [_finding(c) for c in kept]


def _finding(found: Candidate) -> Finding:
    said, reason = found.said, found.reason
    return Finding(
        "decision",
        TextSpan(said.seq, said.block, found.sentence.start, found.sentence.end),
        reason=TextSpan(said.seq, said.block, reason.start, reason.end) if reason else None,
        score=found.score,
        calls=(found.effect.seq,) if found.effect else (),
    )


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates stand for one choice."""
    apart = abs(one.place - other.place)
    if one.said is other.said:
        return abs(one.sentence.start - other.sentence.start) < 600 or _likeness(one, other) > 0.3
    if apart <= 2 and one.batch == other.batch:
        return True
    if one.effect is not None and one.effect is other.effect and apart <= 6:
        return apart <= 2 or _likeness(one, other) > 0.12
    return _likeness(one, other) > (0.3 if apart <= 12 else 0.45)


def _likeness(one: Candidate, other: Candidate) -> float:
    return len(one.words & other.words) / (min(len(one.words), len(other.words)) or 1)


def candidates_in(blocks: Sequence[Block]) -> Iterator[Candidate]:
    """The best sentence of each text, and of a long text the best two."""
    acts: dict[int, Act] = {n: act_of(b) for n, b in enumerate(blocks) if isinstance(b, Did)}
    last_call = max(acts, default=-1)
    batch = 0
    for place, said in enumerate(blocks):
        if isinstance(said, Did):
            batch += 1
        elif said.who != "user" and is_english(said.text):
            found = list(_of_text(blocks, acts, place, said, batch, is_last=place > last_call))
            found.sort(key=lambda c: (-c.score, c.sentence.start))
            yield from found[:2] if len(said.text) > LONG else found[:1]


def _of_text(
    blocks: Sequence[Block], acts: dict[int, Act], place: int, said: Words, batch: int, *, is_last: bool
) -> Iterator[Candidate]:
    sentences = sentences_of(said.text)
    after, steps = _effect_after(blocks, acts, place)
    before = _effect_before(blocks, acts, place)
    around: set[str] = set()
    if after is not None:
        around.add("effect" if steps <= 3 else "effect later")
    if any(_DIAGNOSIS.search(s.text) for s in sentences):
        around.add("diagnosis")
    if len(said.text) > LONG:
        around.add("long text")
    if is_last and sentences and _SUMMARY.match(_PLAIN.sub("", sentences[0].text)):
        around.add("summary")
    for n, sentence in enumerate(sentences):
        signs = signs_of(_PLAIN.sub("", sentence.text))
        if not signs & {"commits", "did", "fix", "strong", "proposes"}:
            continue
        reason = _reason(sentences, n)
        if reason is not None:
            signs.add("reason" if reason is sentence else "reason beside")
        effect = after if steps <= 8 else None
        if "did" in signs and "commits" not in signs and before is not None:
            effect = before
            signs.add("effect")
        words = content_words(sentence.text)
        yield Candidate(place, said, sentence, frozenset(signs | around), reason, effect, batch, words)


def signs_of(text: str) -> set[str]:
    """What a sentence itself shows. Questions, offers and scraps show nothing."""
    if text.count(" ") < 4 or _ASKS.search(text) or _CONDITION.search(text) or _RETELLS.match(text):
        return set()
    signs = {name for name, pattern in _SIGNS if (pattern.match if name == "announces" else pattern.search)(text)}
    if not signs & {"commits", "did", "fix", "proposes"}:
        signs.add("states")
    return signs


_SIGNS: Final = (
    ("commits", _COMMITS),
    ("did", _DID),
    ("fix", _FIX),
    ("strong", _STRONG),
    ("proposes", _PROPOSES),
    ("routine", _ROUTINE),
    ("cleanup", _CLEANUP),
    ("repeats", _REPEATS),
    ("testing", _TESTING),
    ("doubts", _DOUBTS),
    ("announces", _ANNOUNCES),
)


def _reason(sentences: list[Sentence], n: int) -> Sentence | None:
    """The sentence that says why: this one, the one before or the one after."""
    if _REASON.search(sentences[n].text):
        return sentences[n]
    for other in (n - 1, n + 1):
        if 0 <= other < len(sentences) and _gives_reason(sentences[other].text):
            return sentences[other]
    for other in (n - 1, n - 2):
        if 0 <= other < len(sentences) and _DIAGNOSIS.search(sentences[other].text):
            return sentences[other]
    return None


def _gives_reason(text: str) -> bool:
    return bool(_REASON.search(text)) and not _ROUTINE.search(text)


def _effect_after(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> tuple[Did | None, int]:
    """The next call that changes something, and how many calls stand before it."""
    steps = 0
    for n in range(place + 1, len(blocks)):
        block = blocks[n]
        if not isinstance(block, Did):
            continue
        if acts[n] == "write" or (acts[n] == "run" and not is_refused(block)):
            return block, steps
        if acts[n] in ("check", "record"):
            break
        steps += 1
    return None, 0


def _effect_before(blocks: Sequence[Block], acts: dict[int, Act], place: int) -> Did | None:
    for n in range(place - 1, max(place - 6, -1), -1):
        block = blocks[n]
        if isinstance(block, Did) and acts[n] in ("write", "run"):
            return block
    return None


def _is_after_error(blocks: Sequence[Block], place: int) -> bool:
    call = next((b for b in reversed(blocks[max(place - 2, 0) : place]) if isinstance(b, Did)), None)
    return call is not None and call.has_failed
