"""Cues of failure: the phrases with which an agent says that a try failed, and that it goes another way. English only;
see cues.py."""

from __future__ import annotations

from typing import Final

from wakelog.insight.cues import phrases

NEW_WAY: Final = phrases(
    r"""
    (?:different|another|alternative|simpler|better) (?:approach|way|method|strategy|route|solution|tactic)
    from scratch|start(?:ing)? (?:over|fresh)|(?:completely|entirely) (?:rewrite|replace|redo)
    """
)
OTHER_WAY: Final = phrases(
    r"""
    (?:different|another|other|alternative) (?:tool|option|url|command|library|package|version)
    (?:let's|let me) (?:just )?try|let me just
    ^(?:so |then |or |maybe )?try (?:a|an|the|using|with|different|another|something|it|again with)
    ^(?:instead|alternatively|easier)|workaround|work around
    (?:fall|falling) back (?:to|on)|switch(?:ing)? to
    (?:^|, )since (?:that|this|the|it)\b.{0,60}\b(?:fail|not|n't|doesn)\w*
    need to (?:use|recalculate|adjust)|try one more|one more thing
    the (?:correct|right|proper) (?:approach|way|command|method|syntax|tool|place)
    (?:one|another) option
    is (?:simpler|easier) (?:for|here|to)
    """
)
"""It names another way than the one that was tried."""
COMPARES: Final = phrases(
    r"""
    instead|rather than|after all|simpler|easier|bypass|manually|directly|from scratch|going back to
    more (?:robust|reliabl[ey]|direct|forceful|comprehensive|thorough|explicit|targeted|aggressive)
    """
)
"""Where the agent also commits to something, it is another way."""
DOING: Final = phrases(
    r"^(?:so |now )?(?:using|creating|writing|building|switching|moving|falling|trying|doing|adding)\b"
)
"""It says what it does now."""
UNDOES: Final = phrases(
    r"""
    (?:i'll|i will|let me|let's|i need to|we should|we need to|i should|going to|i've|i have)(?: \w+)? <undo>
    ^(?:so |now |then |first,? )?(?:revert(?:ed|ing)?|undo(?:ing)?|roll(?:ed|ing) back|back(?:ed|ing) out)
    (?:change|switch|set|move|put|bring) .{0,60}\bback (?:to|in)
    """,
    undo="revert\\w*, undo, undid, roll back, rolled back, back out, restor\\w*",
)
"""It takes back what it did."""
ONLY_TRIES: Final = phrases(
    r"""
    also|temporar\w+|to be sure|to (?:see|check|confirm|verify|make sure)|debug\w*|prints?|logging
    without my changes?|original
    """
)
"""It takes something back only to compare, or to tidy up."""
REPAIR: Final = phrases(
    r"""
    syntax|indentation|quot\w+|escap\w+|typo|paths? with|correct(?:ing)? (?:the )?(?:path|command|syntax)
    read the file|does not exist|made a mistake|heredoc|(?:one|a single) (?:line|command|block)|unrelated|again
    combine|correct this|redo|semicolons?|commas?|brackets?|parenthes[ie]s
    """
)
"""It only repairs how the call was written."""
SLIP: Final = phrases(
    r"""
    mess(?:ed)? up|indentation|shifted|made (?:a|the same|another) mistake|redo|carefully|corrupt\w*|debug\w*|typo
    line numbers?|(?:wrong|two|multiple) (?:code )?blocks?
    """
)
"""It was only written down wrongly."""
WANTED: Final = phrases(
    r"""
    reproduc\w+ (?:was|is|were) success\w*|successfully reproduced|(?:issue|bug|error|problem) (?:is|was) reproduced
    ^as (?:i |we )?(?:expected|predicted)|fail\w* as (?:expected|predicted)|i (?:have |can |could )?reproduced?
    this confirms|is expected
    """
)
"""The failure was wanted: it shows the bug."""
REFUTED: Final = phrases(
    r"""
    (?:is|was|'s)(?: probably)?(?: not|n't) the (?:issue|problem|cause|case|reason|bug|culprit)
    (?:must be|is|are) elsewhere|not it,? either|red herring|dead end|ruled? out|refuted
    wrong (?:approach|track|direction|path|assumption|theory)|i was wrong
    not the (?:right|correct) (?:one|file|place|approach|fix)
    (?:hypothesis|theory|assumption) (?:is|was|turned out) (?:wrong|incorrect|false|not)
    ^so (?:it|this|that)(?:'s| is)(?: not|n't) (?!just|only|a big|bad)\w+|that alone (?:is|was)(?: not|n't)
    """
)
"""A guess was wrong."""
FAILED: Final = phrases(
    r"""
    <tried> (?:did not|didn't|does not|doesn't|will not|won't|had no|has no)(?: \w+)? <work>
    (?:didn't|did not|doesn't|does not)(?: seem to)? work|did(?: not|n't) (?:succeed|help)|(?:won't|will not) work
    (?:error|issue|problem|failure|bug) (?:still )?persists|no luck|ha[ds] no effect
    still (?:\w+ly )?<bad>
    still no (?!need|longer|problem|issue)\w+|still not \w+|still \w+n't
    same (?:\w+ )?(?:error|failure|result)s?(?: again)?
    (?:is|are|was)(?: actually)? not (?:working|appearing|showing|helping|taking effect|being \w+)
    none of (?:these|those|the|them)\b.{0,60}\b(?:work|match|help|available|contain)\w*
    keeps? (?:fail|return|throw|giv|hang|crash|reject|refus|error|timing)(?:ing|ting)?(?: out)?
    (?:did|does)(?: not|n't) actually \w+
    (?:approach|way|method|route|attempt) (?:has|had|hits?|runs? into|ran into) (?:\w+ ){0,3}<fault>
    (?:couldn't|could not|can't|cannot) (?:run|be run|start) (?:at all|here|in this|on (?:this|your|the))
    giv(?:e|ing) up|abandon\w*|took too long|too slow|timed out|unreasonable
    made (?:it|things) worse|(?:that|this|i|it|change) broke (?:the|it|something)
    have(?: not|n't) (?:recovered|found|solved|fixed)|nothing (?:was |is )?(?:found|useful|there)|found nothing
    (?:simply|just|only|merely) \w+ing\b[^.]{0,80}\b(?:is|was)(?: not|n't) (?:enough|sufficient)
    (?:can't|cannot|unable to|not able to) reproduce
    """,
    fault="issues?, problems?, errors?, limit\\w*",
    bad="fail\\w*, succeed\\w*, doesn't, does not, the same, getting, seeing, hitting, reject\\w*, broken, happen\\w*,"
    "nothing, show\\w* \\w*, remain\\w*, report\\w*, complain\\w*, return\\w*, occur\\w*, missing, wrong",
    tried="that, this, it, which, approach, fix, attempt, change, method, trick, the \\w+",
    work="work, help, fix, solve, effect, change, have any effect, seem to work, apply",
)
"""A try had no success."""
STILL: Final = phrases(
    r"""
    still (?!<well>)\S+
    """,
    well="work\\w*, pass\\w*, good, fine, ok\\w*, green, clean, valid, true, need\\w*, have to, to , runn\\w*"
    ", check\\w*, look\\w*, compil\\w*, build\\w*, install\\w*, download\\w*, wait\\w*, load\\w*, think\\w*, going"
    ", worth, want, can, could, should, would",
)
"""At the start of a text after a change: what it says is as before."""
STOPPED: Final = phrases(r"(?:fail|cancel|abort|refuse|reject|block|crash)(?:l?ed|d|s|es)? (?:because|due to|since)")
"""A try has failed, and it says why: then it may be done in another way."""
NO_RESULT: Final = phrases(
    r"""
    (?:did|does)(?: not|n't) (?:yield|produce|reveal|turn up|lead to) (?:any|anything|the expected|what)
    not reproduc(?:ing|e) the (?:issue|bug|problem|error)
    """
)
"""The try had no result, whatever the agent concludes from that."""
BARRED: Final = phrases(
    r"""
    not (?:possible|feasible|an option|viable)|isn't (?:possible|feasible|an option|going to work)
    (?:there is|there's|there are) no (?:\w+[ -]){0,3}(?:workaround|way|option|source|support|alternative)
    (?:can't|cannot) (?:be done|make|get|verify|proceed|find)
    neither .{0,60}\b(?:has|is|works?|contains?)
    """
)
"""The way is closed."""
OWN_FLAW: Final = phrases(
    r"""
    i was (?:\w+ )?(?:wrong|mistaken|incorrect)(?: about| that| to| in|$|[.:,;])
    my (?:\w+ ){0,2}<guess> (?:was|is|turned out(?: to be)?) (?:\w+ )?(?:wrong|incorrect|false|flawed|off|mistaken|not)
    my (?:\w+ ){0,3}(?:uses?|used|assumed|assumes|took|targets?|followed) the wrong
    (?:problem|flaw|issue|trouble) with my (?:\w+ )?<idea>
    my (?:\w+ )?<idea> (?:was|is) (?:wrong|flawed|incorrect|broken)
    (?:my |the )?(?:last|previous) <idea>(?: i made)? (?:was (?:wrong|incorrect|flawed)|caused|broke|introduced)
    """,
    idea="approach, fix, change, proposal, idea, plan, solution",
    guess="hypothesis, theory, assumption, guess, diagnosis, suspicion",
)
"""It gives up its own proposal, which may not have been tried by a call."""
NOT_GIVEN_UP: Final = phrases(
    r"""
    if (?:it|that|this|neither)|still (?:works?|pass\w*|need to|valid)|to (?:make sure|ensure|verify|see)|no longer
    because i (?:did(?:n't)?|had|forgot|used|made)|i made a mistake|without (?:my|the|our|these) changes?|as expected
    the (?:issue|problem|cause|reason|bug) (?:here )?(?:is|was)\b
    (?:should|will|would) (?:now )?(?:fix|resolve|solve|address|handle)|you(?:'re| are) still|for you|maybe
    ^only\b.{0,80}\bfail\w*
    previously|earlier|reproduc\w+ (?:script|test|case)|would (?:not|n't)|might|the (?:user|issue) (?:says|reports)
    """
)
POINTS_BACK: Final = phrases(r"(?:due to|because of|given|with) (?:this|that|these)|for (?:this|that) reason")
"""It refers to the sentence before, which has the reason."""
DENIED: Final = phrases(
    r"""
    unfortunately|not (?:enough|sufficient|eligible|available|allowed|possible|able|permitted)
    unable|can(?:not|'t)|could(?:n't| not)|insufficient
    """
)
"""A service does not do it."""
CAUSE: Final = phrases(
    r"""
    because|since|due to|can(?:not|'t)|fail\w*|error|missing|needs?|not|no|too|instead|unexpected|wrong|timed? ?out
    \w+n't
    """
)
EXPLAINS: Final = phrases(
    r"""
    (?:suggests?|indicates?|means?|shows?|implies|reveals?) (?:that |a |an |the )?\w+|caused? by|comes? from|root cause
    the (?:issue|problem|cause|error|culprit|reason)(?: here)? (?:is|was|lies|comes|seems)|turns out|probably|likely
    requires?|(?:is|are|was|were)(?: not|n't) (?:in|set|installed|available|supported|tracked|allowed|found|valid)
    """
)
"""It says why something failed."""
COURTESY: Final = phrases(
    r"^(?:thank|thanks|i apologi[sz]e|my apologies|sorry|you(?:'re| are) (?:\w+ )?right|understood)"
)
NO_CHANGE: Final = phrases(
    r"""
    ^(?!if\b)(?:.*\b)?(?:still(?! too)|the same|no (?:change|difference|effect)|worse|persists?)
    ^same
    """
)
"""The user says that a try changed nothing."""
