"""Cues of summaries and answers: verdicts, labels, headings, and what was left out. English only; see cues.py."""

from __future__ import annotations

from typing import Final

from wakelog.insight.cues import phrases

LEAVES: Final = phrases(
    r"""
    (?:i|we)(?:'ve| have)?(?: \w+ly)? <left> (?!you|with)\w+
    (?<!because )(?:i|we)(?: \w+ly)? <never>(?: \w+ly)? <change>
    (?:left|kept|leave|keep|leaving|keeping|stays?|stayed|remains?) .{0,60}?\b<unchanged>
    deliberate(?:ly)?|intentional(?:ly)?|purposely|consciously|on purpose|by design
    out of scope|not worth|overkill|premature|unnecessary
    (?:chose|decided|opted|preferred?) (?:\w+ )?not to|rather not|hold(?:ing)? off|held off
    no (?:\w+ )?(?:changes?|fix|action|edits?|configuration) (?:\w+ )?(?:needed|required|necessary)
    (?:does not|doesn't|do not|don't) need (?:any|a|an|to be|further|more) (?:\w+ )?(?:chang|updat|edit|fix|modif)\w*
    nothing (?:else )?(?:to|needs to be) (?:fix|change)\w*
    """,
    left="left, kept, skipped, omitted, excluded, deferred, held off, stopped short, preserved, avoided, declined",
    change="touch, change, modify, add, remove, include, try, attempt, fix, implement, create, rename, update, bump"
    ", delete, refactor, expose, introduce, build, wire, migrate, restructure, rewrite, use, force, guess, apply, make",
    unchanged="as[- ]is, as they are, as it is, untouched, unchanged, alone, in place, intact, out, for now",
    never="did not, didn't, have not, haven't, won't, will not, wouldn't, would not, am not going to",
)
"""It leaves something out, or as it is."""

TOLD: Final = phrases(
    r"the requested|as (?:you )?(?:instructed|requested|asked|told|specified|directed|agreed)|per your|you asked"
)
"""It only follows an instruction."""

DESCRIBES: Final = phrases(
    r"""
    now (?:\w+ly )?(?!<result>)\w+s\b
    ^now,? (?:if|when|each|every|all|the|only|any)\b
    (?:is|are|\w+s|\w+ed)\b.{0,80}\b(?:instead of|rather than)
    """,
    result="passes, works, returns, has, is, was, shows, reports, fails, needs, makes sense, looks, exists, understands"
    ", describes, reflects, documents, covers, explains, contains, includes",
)
"""It says what the work does now, or does in place of something else."""

VERDICT: Final = phrases(
    r"""
    ^so:|^(?:in short|bottom line|short answer|net|verdict|conclusion|overall|tl;?dr)[:,—-]
    the (?:<sort> )+<thing> (?:is|was|would|here)
    (?:is|was|are|would be|looks like|seems) (?:the|a) <sort> <thing>
    this (?:one )?(?:\w+ ){0,5}(?:is|was) the (?:entire|whole|actual|real|only) (?:fix|change)
    you (?:don't|do not|won't) need (?:to|a|an|any|the)
    is the sweet spot|(?:is|would be) (?:overkill|enough|sufficient) (?:here|for)
    """,
    sort="right, best, better, minimal, simplest, cleanest, safest, correct, proper, real, actual, most \\w+",
    thing="fix, solution, approach, way, change, option, choice, answer, move, call, place, design, fit",
)
"""It concludes what to do."""

LABELLED: Final = phrases(
    r"""
    ^(?:the |my |key )?<choice>s?(?: \([^)]*\))?(?::| [—–-]) \w+
    ^(?:best|highest|top|main|key|biggest|safest|simplest|cheapest)\b[^.?:]{0,30}: \w+
    ^(?:why|recommend(?:ation|ed)|suggest(?:ion|ed \w+)|propos(?:al|ed \w+)|my <view>)\b[^.?:]{0,40}(?::| [—–-]) \w+
    """,
    choice="fix, solution, workaround, decision, approach, design, choice, trade-?off, rationale, strategy, resolution",
    view="take, recommendation, vote",
)
"""A label says that what follows is a choice."""

DECISION_TITLE: Final = phrases(
    r"""
    ^(?:\w+ ){0,2}(?:decisions?|choices|trade-?offs|rationale)(?: \w+){0,2}$
    """
)
"""Each item under such a heading is a choice."""
SHORT_FIX: Final = phrases(
    r"""
    (?:let me|let's|i'll|i will|now|need to)(?: \w+)? (?:fix|correct|change|address|resolve|adjust|handle|update)
    ^fix(?:ing)?\b
    """
)
"""It announces the repair of what was said before."""

CHOICE_TITLE: Final = phrases(
    r"""
    decisions?|design|approach|trade-?offs?|rationale|why|reason\w*|recommend\w*|suggest\w*|fix(?:es)?|choices?
    root cause|left|kept|not (?:done|changed|included|touched)|deviations?|scope|plan|proposal|proposed|strategy
    solution|caveats?|notes?|judg\w+|assumptions?|how (?:i|you|we|to fix)|minimal
    """
)
LIST_TITLE: Final = phrases(
    r"""
    files?|tests?|testing|verif\w+|validat\w+|checks?|results?|status|next steps?|usage|how to (?:run|use|test)|progress
    commits?|todos?|remaining|commands?|output|evidence|what's next|prerequisites?|set-?up|steps|structure|documentation
    """
)
"""What stands under such headings are choices, or only lists."""
