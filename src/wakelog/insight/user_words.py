"""The user's words: the goal of a turn, corrections of what the agent did, and wishes that stand.

A prompt comes wrapped: by an editor that adds its open tabs, by a harness that adds instructions. The wrappers are
removed first; what is left are the user's own words. Words that only say yes, go on, or answer what the agent asked set
no new goal: the earlier one is carried on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from wakelog.insight.blocks import Finding, TextSpan, TurnBlocks, Words
from wakelog.insight.sentences import content_words, sentences_of

_STARTS: Final = (
    re.compile(r"^## My request for [^\n]*:\s*\n", re.MULTILINE),
    re.compile(r"^(?:Here's the issue text:\s*\n)?ISSUE:\s*\n", re.MULTILINE),
    re.compile(r"^<pr_description>\s*\n(?:Consider the following PR description:\s*\n)?", re.MULTILINE),
    re.compile(r"<(?:issue|task|user_query|user_request|command-args|uploaded_files_issue)>\s*"),
)
_ENDS: Final = re.compile(
    r"^(?:INSTRUCTIONS:|<instructions>|# Task Instructions)|</(?:pr_description|issue|task|user_query|user_request"
    r"|command-args)>|^Files included in the challenge\b",
    re.MULTILINE,
)
_ASIDE: Final = re.compile(
    r"<(system-reminder|environment_context|ide_selection|ide_opened_file|local-command-\w+|command-name"
    r"|user_instructions"
    r"|command-message|bash-input|bash-stdout|bash-stderr|task-notification|hook\w*|attached_files)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_NO_WORDS: Final = re.compile(
    r"\s*(?:\[Request interrupted|Caveat: The messages below|This session is being continued)"
)

_AGREES: Final = re.compile(
    r"(?:(?:yes|yep|yeah|yup|ok|okay|sure|great|perfect|good|nice|cool|right|correct|exactly|fine|alright|thanks"
    r"|thank you"
    r"|please|lgtm|sounds good|looks good|that works|agreed|absolutely|of course|got it|no problem|hi|hello"
    r"|hey)\b[\s,.!]*)+",
    re.IGNORECASE,
)
_GO_ON: Final = re.compile(
    r"(?:(?:please|then|now|and|just|let'?s|you can|can you|you may)\s+)*(?:go ahead|continue|proceed|go on"
    r"|keep going|do it"
    r"|do that|do so|carry on|go for it|resume|try again|retry|i confirm|confirmed|make it so|implement it|apply it"
    r"|next|let'?s(?= *[.!]?$))\b"
    r"(?:\s+(?:with|and)\s+(?:that|this|it|the|these|those|your|everything|all)\b[^.?!\n]{0,60}|\s+(?:please|now"
    r"|then))?[\s.!]*",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"\?(?=[\s)\"'*]|$)|\bplease (?:provide|confirm|let me know|tell|share|reply|choose|specify|select|verify)"
    r"|\blet me know\b"
    r"|\bcould you (?:please )?(?:provide|confirm|tell|share|specify)|\bI(?:'ll| will) need (?:your|the|to know)",
    re.IGNORECASE,
)
_REQUEST: Final = re.compile(
    r"\b(?:can|could|would|will) (?:you|we|i)\b|\bdo you\b|\bi(?:'d| would) (?:like|rather|prefer)"
    r"|\bi (?:also )?(?:need|want)"
    r" (?:to|you|a|an|the|some)\b|\bis (?:it|there)\b|\bare there\b|\bhow (?:do|can|about|much|many|long)\b|\bwhat\b"
    r"|\bwhy\b"
    r"|\blet'?s\b|\bshould\b|\binstead\b|\balso\b|\bplease (?!proceed|go|confirm|continue|do\b)|\bnow\b|\bactually\b"
    r"|\bmake\b|\badd\b|\bremove\b|\bchange\b|\bfix\b|\bcancel\b|\bbook\b|\bcreate\b|\brun\b|\bupdate\b|\bwrite\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(
    r"\?|\bi(?:'d| would) (?:also )?(?:like|rather|prefer)|\bcan you\b|\bcould you\b|\bneither\b|\binstead\b"
    r"|\bactually\b"
    r"|\balso\b|\blet'?s\b|\bchange\b|\bcancel\b|\bi (?:also )?(?:need|want) (?:to|you)\b|\bmore thing\b",
    re.IGNORECASE,
)
_TURNS: Final = re.compile(
    r"\binstead\b|\balso\b|\bactually\b|\bneither\b|\bnone of\b|(?:^|[.!?]\s+)(?:what|why|how|where|when|who"
    r"|which)\b[^.!]*\?"
    r"|\bone more\b|\banother (?:thing|question)\b|\bi think\b|\bwe should\b",
    re.IGNORECASE,
)
_STOP: Final = re.compile(r"\s*#+(?:STOP|END|TRANSFER)#+\s*$")


def own_words(text: str) -> tuple[int, int]:
    """Where the user's own words stand in a prompt: without wrappers. An empty range when there are none."""
    start, end = 0, len(text)
    for pattern in _STARTS:
        found = pattern.search(text)
        if found:
            start = found.end()
            break
    found = _ENDS.search(text, start)
    if found:
        end = found.start()
    while aside := _ASIDE.search(text, start, end):
        before, after = text[start : aside.start()].strip(), text[aside.end() : end].strip()
        if (before and after and len(after) <= len(before)) or (before and not after):
            end = aside.start()
        else:
            start = aside.end()
    stop = _STOP.search(text, start, end)
    end = stop.start() if stop else end
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    return (start, start) if _NO_WORDS.match(text, start, end) else (start, end)


def is_going_on(words: str, asked: str) -> bool:
    """Whether the words only agree, thank, tell the agent to go on, or answer what it `asked` last."""
    rest = _AGREES.match(words)
    left = words[rest.end() :] if rest else words
    going = _GO_ON.match(left)
    left = left[going.end() :] if going else left
    left = re.sub(
        r"(?:that'?s all|no more|nothing else|so much|very much|for your help|for the help)[^.?!]*[.!]?",
        "",
        left,
        flags=re.I,
    )
    left = left.strip(" \n.!,")
    if not re.search(r"\w", left) or (_AGREES.fullmatch(left + " ") is not None):
        return True
    if going and len(left) < 40 and not _NEW.search(left):
        return True
    if not _ASKED.search(asked[-400:]) or _TURNS.search(left):
        return False
    # The agent asked: words that are about what it asked, or that request nothing, are its answer.
    own = content_words(left)
    told = len(own & content_words(asked)) / (len(own) or 1)
    return told >= 0.45 or not _REQUEST.search(left)


def find_goal(turn: TurnBlocks, earlier: Finding | None, asked: str) -> Finding | None:
    """The goal of a turn: the user's words, or the `earlier` goal where these only go on with it. `asked` is what the
    agent said last before."""
    for block in turn.blocks:
        if not isinstance(block, Words) or block.who != "user":
            continue
        start, end = own_words(block.text)
        if start == end:
            continue
        span = TextSpan(block.seq, block.block, start, end)
        if earlier is not None and is_going_on(block.text[start:end], asked):
            return Finding("goal", span, reason=earlier.reason or earlier.span, detail="carried")
        return Finding("goal", span)
    return None


# Corrections and wishes

_FAILS: Final = re.compile(
    r"\b(?:still|again)\b.{0,40}\b(?:not|n't|fail\w*|broken|wrong|error|nothing|no|same|get\w*|see\w*|happen\w*)\b"
    r"|\b(?:does|did|do|is|are|was|were|has|have)(?: not|n't)\b.{0,30}\b(?:work\w*|load\w*|show\w*|compil\w*"
    r"|build\w*|run\w*|pass\w*"
    r"|appear\w*|happen\w*|start\w*|render\w*|open\w*)\b|\bnot (?:working|loading|showing|building|passing)\b"
    r"|\bno \w+(?: or \w+)? (?:is|are|was|were) \w+ing\b|\b(?:it|this|that|now|which) (?:fails|failed|crashes"
    r"|crashed|broke|breaks)\b"
    r"|\bgetting (?:this|an?|the) (?:error|exception)\b|\b(?:i|we) (?:get|got|see|saw) (?:this|an?"
    r"|the)(?: \w+)? (?:error|exception|failure)\b"
    r"|\btests? (?:is|are|still)? ?fail\w*|\bthere(?:'s| is) (?:an?|still) (?:error|problem|issue|bug)\b"
    r"|\bnothing (?:happens|happened)\b",
    re.IGNORECASE,
)
_REJECTS: Final = re.compile(
    r"^(?:no|nope|nah|wait|stop|hold on|hmm+,? no|not quite|wrong)\b|\bthat(?:'s| is) (?:not|n't|wrong|incorrect"
    r"|the wrong)"
    r"|\bthis (?:is|isn't) (?:wrong|incorrect|not (?:what|right|correct))|\bnot what i\b|\bi (?:didn't|did not"
    r"|never) (?:ask|want|say|mean)"
    r"|\byou (?:should(?:n't| not)|shouldn't|must not|didn't|did not|forgot|missed|misunderstood|removed|broke"
    r"|deleted|ignored)\b"
    r"|\b(?:don't|do not|shouldn't|should not|never) (?:do|use|add|change|touch|remove|create|modify|need|make"
    r"|delete|commit|put|run)\b"
    r"|\b(?:revert|undo|roll back|put (?:it|that|this) back)\b|\bneither of (?:those|these|them)\b"
    r"|\bdoesn't (?:make sense|seem right|look right)"
    r"|\bwhy (?:did|are|do) you\b|\bi(?:'m| am) not (?:happy|satisfied|interested)|\bthat doesn't\b|\bisn't (?:right"
    r"|correct|true|what)\b"
    r"|\bi(?:'ve| have)? (?:already|previously) (?:told|said|mentioned|provided|gave)|\bunacceptable\b"
    r"|\bi disagree\b|\bthere must be\b",
    re.IGNORECASE | re.MULTILINE,
)
_REDIRECTS: Final = re.compile(
    r"\binstead(?: of)?\b|\brather than\b|\bactually\b|\blet'?s (?:only|just|not|use|keep|leave|go|do|switch|try)\b"
    r"|\bbut (?:leave|keep|use|only)\b"
    r"|\bonly (?:add|change|use|do|keep)\b|\b(?:i(?:'d| would) )?(?:rather|prefer)\b|\bchange of plan"
    r"|\bon second thought|\bleave (?:it|the|that|those|them|this)\b"
    r"|\bi(?:'ve| have)? changed my mind\b|\bwe should (?:rather|not|do|use|keep|also)\b|\bjust (?:use|do|keep|make"
    r"|add|remove)\b",
    re.IGNORECASE,
)
_NOT_REJECTED: Final = re.compile(
    r"^(?:no|nope)[,.]?\s+(?:that'?s (?:all|it|fine|ok|okay|good|everything|correct|right)|thanks?|thank you|problem"
    r"|worries|need|other|further"
    r"|more|nothing|i(?:'m| am) (?:good|fine|all set)|i think|not (?:at the moment|right now|for now|needed)"
    r"|it'?s (?:fine|ok|all))\b"
    r"|^no,? (?:i (?:do not|don't|won't) (?:want|need|have)|preference)|^wait\b.{0,20}\?",
    re.IGNORECASE,
)
_IF_INSTEAD: Final = re.compile(
    r"\b(?:if|whether|could|can|would|is it possible|possible|in case)\b[^.;\n]*\binstead\b|\binstead\b[^.\n]*\?", re.I
)
_WISH: Final = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|going forward|every time|whenever|by default|as a rule"
    r"|for the rest of)\b"
    r"|\bi (?:really |strongly |always |would |do |don't |do not )?(?:prefer|like it when|don't like|hate"
    r"|want to use|(?:do not|don't) want)\b"
    r"|\bi'd (?:prefer|rather)\b|\bmake sure (?:to|you|that you)\b|\b(?:don't|do not|never) (?:ever )?(?:use|commit"
    r"|push|touch|modify|add|create|run)\b"
    r"|\bas long as\b|\bmust (?:not|be|have)\b|\bonly (?:use|if|want)\b|\bplease (?:always|never|don't|avoid|keep"
    r"|use)\b|\bprefer(?:ably|ence|red)?\b"
    r"|\bi think (?:we|it|you|the \w+) should\b|\bis (?:less|more) important\b|\bno (?:comments|emojis?|mocks?"
    r"|insurance)\b|\bbudget\b|\bat most\b|\bno more than\b|\bcheapest\b|\bfirst,? and (?:if|then)\b",
    re.IGNORECASE,
)
_WEAK_WISH: Final = re.compile(r"\bi(?:'d| would) like\b", re.IGNORECASE)


def find_corrections(turn: TurnBlocks, is_first: bool, asked: str) -> Iterator[Finding]:
    """How the user took what the agent did before: one finding at most, a `correction` (rejects or contradicts), a
    `redirect` (wants it another way) or a `failure_report` (says that it does not work)."""
    block, start, end = _words(turn)
    if block is None or is_first:
        return
    words = block.text[start:end]
    best: tuple[int, str, TextSpan] | None = None
    pieces = sentences_of(words)[:12]
    for place, piece in enumerate(pieces):
        text = piece.text
        span = TextSpan(block.seq, block.block, start + piece.start, start + piece.end)
        scored = [(0, "")]
        if _FAILS.search(text) and not text.lower().startswith(("if ", "in case")):
            scored.append((3 if place < 3 else 1, "failure_report"))
        if _REJECTS.search(text) and not (place == 0 and _NOT_REJECTED.match(text)):
            is_no = re.match(r"(?:no|nope)\b", text, re.I)
            scored.append(
                (
                    1
                    if (is_no and len(pieces) == 1 and len(text) < 30) or (is_no and _ASKED.search(asked[-300:]))
                    else 3,
                    "correction",
                )
            )
        if _REDIRECTS.search(text) and not _IF_INSTEAD.search(text):
            strong = re.search(
                r"\binstead of\b|\brather than\b|\blet'?s (?:only|just|not)\b|\bbut (?:leave|keep)\b"
                r"|\bchanged my mind\b",
                text,
                re.I,
            )
            scored.append((3 if strong or re.search(r"\binstead\b", text, re.I) else 1, "redirect"))
        score, kind = max(scored)
        if score and (best is None or score > best[0]):
            best = (score, kind, span)
    if best is not None and best[0] >= 3:
        yield Finding(best[1], best[2], score=best[0])


def find_preferences(turn: TurnBlocks) -> Iterator[Finding]:
    """Wishes that hold beyond the next step."""
    block, start, end = _words(turn)
    if block is None or end - start > 2000:
        return
    for piece in sentences_of(block.text[start:end]):
        if _WISH.search(piece.text) and not piece.text.endswith("?"):
            yield Finding(
                "preference", TextSpan(block.seq, block.block, start + piece.start, start + piece.end), score=2
            )
            return


def _words(turn: TurnBlocks) -> tuple[Words | None, int, int]:
    for block in turn.blocks:
        if isinstance(block, Words) and block.who == "user":
            start, end = own_words(block.text)
            if start < end:
                return block, start, end
    return None, 0, 0
