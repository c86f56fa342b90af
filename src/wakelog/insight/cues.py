"""Cues: the phrases by which the rules recognise a decision, its reason and a routine step. English only.

A table has one phrase per line. A phrase is a case-insensitive regular expression that starts and ends at word
boundaries; `'` matches both kinds of apostrophe. `<past>` is a list of words that is given below the table.
"""

from __future__ import annotations

import re
from typing import Final

_LEAD = (
    r"(?:i'll|i will|let me|let's|i'm(?: not)? going to|i am(?: not)? going to|i won't|i'd rather"
    r"|we'll|we will|we won't|we are going to"
    r"|(?:i|we)(?: (?:also|now|first|then|just|still|really|probably|think we))?"
    r" (?:should|need to|must|have to|want to|can|could|might want to|plan to|decided to|chose to|had to|intend to))"
)
_ADVERBS = (
    r"(?:(?:also|now|just|then|instead|simply|first|therefore|probably|still|not|only|safely|quickly|carefully|need to"
    r"|go and|try to|attempt to|start by|begin by|go ahead and|take a|have a|do a|quickly) )*+"
)
_LOOKS = (
    r"(?:read\w*|look\w*|check\w*|see|explor\w+|search\w*|find|list\w*|examin\w+|investigat\w+|review\w*|inspect\w*"
    r"|verif\w+|confirm\w*|understand\w*|view|open|navigat\w+|run(?:ning)?|test(?:ing)?|re-?run|commit\w*|stage|push"
    r"|submit\w*|summari[sz]e|provide|trac\w+|get|fetch|grep|locate|analy[sz]e|dig|re-?read|double[- ]check|show|think"
    r"|clean ?up|continue|proceed|mark|update (?:the|my) (?:todo|plan)|execut\w+|present|report|ask|wait|compar\w+"
    r"|re-?evaluate|reproduc\w+|build|know|assume|expect|note|explain|learn|gather|identify|determine|figure|study"
    r"|debug|monitor|watch|scan|browse|query|ensure|make sure|tell|say|help|assist|answer|start|begin|finish|complete"
    r"|consider|decide|recall|remember|research\w*|clarif\w+|need (?:your|the|more|some|to know))"
)

_BUSY = (
    r"(?:going|seeing|getting|hitting|having|trying|doing|finding|locating|opening|viewing|working|running|happy|missing"
    r"|thinking|wondering|hoping|assuming|outlining|weighing|evaluating|figuring|noticing|leaning|pulling|loading|waiting|mapping|focusing|starting|continuing|finishing|using"
    r" the)"
)


def phrases(table: str, **lists: str) -> re.Pattern[str]:
    """A table of phrases as one pattern."""
    lines = [line.strip() for line in table.strip().splitlines()]
    for name, words in lists.items():
        inside = "|".join(word.strip() for word in words.split(","))
        lines = [line.replace(f"<{name}>", f"(?:{inside})") for line in lines]
    return re.compile("|".join(map(_at_word_boundaries, lines)).replace("'", "['’]"), re.IGNORECASE)


def _at_word_boundaries(phrase: str) -> str:
    front = r"\b" if phrase[0].isalnum() or phrase[0] == "(" else ""
    back = r"\b" if phrase[-1].isalnum() or phrase[-1] == ")" else ""
    return f"{front}(?:{phrase}){back}"


COMMITS: Final = phrases(
    r"""
    <lead> <adverbs>(?!<looks>|be\b|have\b|do\b|<adverbs>\W)[a-z]+
    <lead> <adverbs>do .{3,60} instead
    (?:i'm|we're) <adverbs>(?!<looks>|<busy>\b)[a-z]{3,}ing
    (?:i am|we are) (?:planning|aiming|switching|moving|choosing|using|opting|keeping|adding|removing)
    ^(?:also )?needs? to <adverbs>(?!<looks>|be\b|have\b)[a-z]+
    (?:planning|aiming|preparing|plan is) to (?!<looks>)\w+
    (?:needs? to|has to|have to|ought to) (?:\w+ )?be \w+(?:ed|t|n)
    ^(?:using|keeping|switching|going|choosing|moving|adding|removing|skipping|leaving|reverting|replacing)<goes>
    ^(?:splitting|falling back|opting|sticking|fixing|changing|making|rewriting|extracting|converting|pinning|wiring)
    ^(?:building|creating|implementing|introducing|wrapping|treating|storing|merging|putting|setting|dropping)<goes>
    ^(?:then |so )?(?:it|this|that|these|they|the) (?:\S+ ){0,4}should (?:just |simply |only )?<do> (?!<well>)
    ^(?:now |then |next,? )?(?:fix|replace|switch|rewrite|extract|convert|wire) (?:the|it|this|that|these|those)
    (?:i|we) (?:can|could) (?:just|simply|instead|safely)
    the (?:key|trick|idea|plan|goal here) is to
    ^(?:then |so )?try \w+ing
    ^\w+ing .{3,80} (?:fixes|solves|resolves|avoids|would fix|should fix|will fix)
    should (?:\w+ ){1,6}?(?:instead of|rather than)
    should (?:keep|stay|remain|continue)
    ^instead of [^,]{3,80}, (?:it|we|i|the|this)
    (?:option|approach|variant|solution) [\dA-D] (?:is|seems|looks|makes|would)
    """.replace("<lead>", _LEAD)
    .replace("<adverbs>", _ADVERBS)
    .replace("<looks>", _LOOKS)
    .replace("<busy>", _BUSY)
    .replace("<do>", "(?:be|use|go|live|return|come|happen)")
    .replace("<well>", "able|fine|safe|enough|ok|good|no|working|done|ready")
    .replace("<goes>", r"\b(?![^.,;]{0,80}\b(?:is|are|was|were|does|do|did|would|will|can)(?:n't| not)\b)")
)
"""The agent commits to something that is more than a look."""

ROUTINE: Final = phrases(
    r"""
    <lead> <adverbs><looks>
    (?:now|next|first|then|also|start by|begin by|prudent to|plan to|going to) <adverbs><looks>
    and see (?:if|whether|what|how|why|where)
    track (?:my|our|the|this) (?:\w+ )?(?:progress|work|tasks?)|to-?do ?list|todowrite
    """.replace("<lead>", _LEAD)
    .replace("<adverbs>", _ADVERBS)
    .replace("<looks>", _LOOKS)
)
"""It announces to look at something, to run something, or to record what was done."""

DID: Final = phrases(
    r"""
    (?<!when )(?<!before )(?<!after )(?<!because )(?<!where )(?<!that )(?:i|we)(?:'ve| have)?(?: \w+)?? <past>
    ^(?:also )?<past> (?:the|it|a|an|\w+)
    """,
    past="added, removed, changed, used, fixed, replaced, kept, reverted, restored, skipped, created, implemented,"
    "refactored, renamed, moved, switched, dropped, deleted, extracted, simplified, reused, chose, decided, went with,"
    "left, cleaned, made, put, avoided, opted, rewrote, updated, disabled, enabled, limited, split, preserved, stuck,"
    "chosen, opted, picked, issued, granted, refunded, approved, waived, credited, flagged",
)

DONE: Final = phrases(
    r"""
    ^(?:also )?(?!<checked>)[a-z]{3,}ed (?:the|a|an|all|\w+)
    """,
    checked="verif, test, confirm, check, review, search, look, commit, push, install, explor, need, complet, pass"
    ", fail, bas, relat, expect, unexpect, interest, compil, analy, inspect, examin, identif, ask, start, finish, merg",
)
"""It starts with what was done, whatever it was."""

FIX: Final = phrases(
    r"""
    (?:the|my|a|one) (?:\w+ ){0,3}?<way>(?: to do)?(?: <of>)?(?: is|'s|:| would be| will be| was)(?: \w+)? to
    (?:the|my) <way> (?:is|was) (?:logically|still)
    ^(?:the|my) <way>(?: here)? is (?:\w+ )?(?:simple|straightforward|clear|easy|trivial)(?:\W*$|: \w+)
    ^(?:\w+,? )?to (?:fix|solve|resolve|address|handle) (?:this|that|the|it)\b[^.:]{0,80}, (?:i|we|the)
    ^(?:the |my )?(?:fix|solution|workaround|decision)(?: here| applied)?(?: \([^)]*\))?: \w+
    (?:the|a) <good> <way>(?: <of>)? (?:is|was|would be|here is)
    (?:the|this) (?:fix|solution|approach) (?:should|would|must|needs to|involves)
    makes? (?:more )?sense to
    it(?:'s| is| would be) (?:a good idea|better|best|safer|simpler|easier|cleaner|prudent) to
    """,
    way="fix, solution, approach, way, option, answer, plan, strategy, idea, workaround, thing, move, choice, design,"
    "policy, path, route",
    of="here, forward, for this, for that",
    good="better, best, right, correct, proper, cleanest, simplest, safest, real, robust, cleaner, safer, simpler,"
    "most \\w+, minimal",
)

STRONG: Final = phrases(
    r"""
    instead(?! of (?:the |an? )?expected)
    rather than
    simpler|simplest
    better|best
    safer|safest|to be safe|just in case
    cleaner|cleanest|easier|easiest
    recommend\w*
    prefer\w*
    decid\w+
    choos\w+|chose
    opt(?:ed|ing)? (?:for|to)
    go(?:ing)? with|went with
    stick(?:ing)? (?:with|to)
    keep(?:ing)? (?:it|the|this|that|both|things|backwards?)
    leav(?:e|ing) (?:it|the|this|that)
    without (?:having|needing|chang|modify|break|touch|add)\w*
    more (?:robust|efficient|reliable|accurate|consistent|direct|targeted|focused|appropriate|idiomatic|explicit)
    minimal
    no need to
    not (?:going|supposed) to
    safe(?:ly)? (?:to )?(?:remov|delet|drop|chang|replac|ignor|skip)\w*
    from scratch
    after all
    properly
    should(?:n't| not)
    only (?:need|want|include|change|add|use)
    on the other hand|trade-?off|alternative\w*
    overkill|out of scope
    as well
    in favou?r of
    (?:is|seems|looks) (?:a|the) (?:clean|simple|safe|good|right|minimal) (?:approach|way|solution|option|choice)
    """
)
"""It compares, prefers or leaves something out."""

PROPOSES: Final = phrases(
    r"""
    i(?:'d| would)? (?:recommend|suggest|propose|advise|argue|lean)
    my (?:recommendation|suggestion|proposal|preference|instinct|take|advice|vote)
    recommend(?:ation|ed)?(?!\.\w| changes)
    would probably be
    the approach would be
    ^(?:my |the )?proposal|(?:i|we)(?:'d)? propose
    i(?:'d| would) (?:say|go|keep|leave|use|add|start|prefer|rather|do|wait)
    would be (?:better|best|safer|simpler|cleaner)
    my (?:default )?plan
    (?:is|was|seems|looks)(?: \w+)? the right (?:call|choice|approach|shape|tool|fit|way|move|place|one)
    (?:wins|win) (?:by|hands|here|on|over|because)
    """
)

REFUSES: Final = phrases(
    r"""
    (?:i|we)(?: \w+)? (?:can't|cannot|can not|am unable to|are unable to|am not able to|are not able to)(?! easily)
    unable to|is not possible|not eligible|not allowed|not permitted
    ^(?:unfortunately|i'm sorry|i am sorry|i apologi[sz]e)[^.]*\b(?:cannot|can't) be \w+(?:ed|de|ne|en|t)
    (?:i|we)(?: \w+)? can only
    """
)
"""It says what it will not or cannot do."""

BARRED: Final = phrases(
    r"(?:cannot|can't|can not|can only) be \w+|(?:does not|doesn't|do not|don't) cover|non-?refundable"
)
ALLOWED: Final = phrases(
    r"""
    (?:you|they|it|this|these|he|she) (?:can|may) (?!<own>)\w+
    i can (?:offer|issue|waive|refund|grant)
    """,
    own="only, choose, take, contact, reach, check, find, see, use, try, consider, visit, call, let, also, always,"
    "expect",
)
"""With a reason, a service refuses (BARRED) or grants (ALLOWED) something."""

SEEKS: Final = phrases(
    r"""
    (?:can't|cannot|can not|unable to|not able to|could not|couldn't) (?:\w+ )?<look>
    """,
    look="search, find, locate, access, look up, retrieve, view, see, identify, verify, tell, know",
)
"""It cannot find out something yet: not a choice."""

GRANTS: Final = phrases(
    r"""
    \w(?:'re| are| is|'s| makes? (?:him|her|them|you|it)) (?:\w+ )?eligible (?:for|to)
    (?:you|they|he|she) (?:qualif(?:y|ies)|(?:are|is) entitled) (?:for|to)
    """
)
"""It says what somebody may have. With a reason, that is as much a choice as a refusal."""

OBLIGED: Final = phrases(r"(?:i|we)(?: \w+)? (?:need to|must|have to|had to)")
"""It says that something has to be done: seldom a choice."""

KEEPS: Final = phrases(
    r"""
    (?:keep|leave|retain|preserve|continue|stick) (?:\w+ )?(?:using|the|it|this|these|them|to|with|existing|current|as)
    (?:keeping|leaving|retaining) (?:it|the|this|that|them|both)
    """
)
"""It leaves something as it is: a choice that no call will show."""

UNDOES: Final = phrases(r"(?:revert|undo|roll back|re-?apply|back out)\w* (?:my|the|this|that|these|those|it|all|both)")

REASON: Final = phrases(
    r"""
    because|since|otherwise|due to
    so that|in order to|just in case
    to (?:avoid|ensure|prevent|keep|make sure|be safe)
    [,;] so
    so (?:we|i|it|that|the|they|users?)
    so \w+(?: \w+)? (?:is|are|can|will|won't|don't|doesn't|stays?|remains?|keeps?|gets?|never|always)
    ^so
    as <it>(?: \w+)? (?:is|are|was|does|do|did|would|will|can|only|already|prevents|allows|has|have)
    , as <it>
    which (?:would|will|means|is|allows|avoids|makes|causes|breaks|prevents|should|keeps|cannot|can't)
    this (?:way|would|will|avoids|allows|ensures|keeps|makes|provides|should|means|prevents)
    that(?:'s| is) why|the reason
    given (?:that|the|this)
    needed (?:for|to)
    for (?:\w+ )?(?:consistency|safety|clarity|simplicity|performance|compatibility|readability|speed|security)
    without (?:breaking|changing|having|needing)
    helps? (?:to|in|with|us)
    avoids?|aims? to
    not (?:possible|available|allowed|supported)
    [—–-] <it>
    """,
    it="it, this, that, these, they, the, we, i",
)

STATED: Final = phrases(
    r"""
    because|since|otherwise|due to|given (?:that|the|this)
    so that|in order to|just in case
    to (?:avoid|ensure|prevent|keep|make sure|be safe)
    [,;] so
    as <it>(?: \w+)? (?:is|are|was|does|do|did|would|will|can|only|already|prevents|allows|has|have)
    , as <it>
    which (?:would|will|means|is|allows|avoids|makes|causes|breaks|prevents|should|keeps|cannot|can't)
    ^(?:this|it) (?:way|would|will|avoids|allows|ensures|keeps|provides|should|means|prevents|gives|fixes)
    that(?:'s| is) why|the reason
    needed (?:for|to)
    for (?:consistency|safety|clarity|simplicity|performance|compatibility|readability|speed|security)
    without (?:breaking|changing|having|needing)
    avoids?
    not (?:possible|available|allowed|supported)
    [—–-] (?:it|these|they)
    """,
    it="it, this, that, these, they, the, we, i",
)
"""A sentence that can be quoted as a reason. One that starts with "so" is a conclusion; its reason comes before."""

AIM: Final = phrases(r"to (?:ensure|keep|make sure)|avoid")
"""What a change is for, in words that would fit any change: no reason to quote."""

CAUSE: Final = phrases(
    r"because|since|due to|given (?:that|the|this)|as (?:it|this|they|the|there) (?:\w+ )?(?:is|are|was|has|does)"
)
"""A reason that is a cause, not a purpose."""

POINTS_BACK: Final = phrases(r"^(?:this|that|it|these|they|otherwise|which)")

UNSURE: Final = phrases(
    r"""
    ^(?:so )?(?:perhaps|maybe|what if|how|hmm|wait|but if|if)
    ^so
    """
)

NAMED_CAUSE: Final = phrases(
    r"root cause|caused by|the (?:issue|problem|bug|cause|culprit)(?: here)? (?:is|was|lies|comes)"
)
"""It says outright what the cause is, so it is a reason also beside the decision."""
CONCLUDES: Final = phrases(r"^(?:therefore|thus|hence|consequently|which means|that means|this means)")
"""It says what follows, so the reason is elsewhere."""
GUESSES: Final = phrases(r"maybe|perhaps|probably|possibly|presumably|might")
"""A guess is no reason to quote."""

DIAGNOSIS: Final = phrases(
    r"""
    found (?:it|the (?:bug|issue|problem|cause|root cause))
    root cause|caused by|turns out
    the (?:issue|problem|bug|cause|error|culprit|reason)(?: here)? (?:is|was|lies|must be|comes)
    this (?:is because|causes|caused|happens because|explains|means that)
    i (?:see|understand|know) (?:the|what the|why)
    (?:is|are|was|were)(?: not|n't) (?:in|being|set|called|handled|included|checked|passed|defined|exported|imported)
    missing|currently|inefficient|incorrect(?:ly)?
    (?:fail(?:s|ed|ing)?|broken?|breaks|wrong|rejected) (?:because|since|due to|when)
    (?:is|are|was|were) (?:stale|overriding|never|mangled|swallowed|ignored|hard-?coded|too \w+)
    (?:doesn't|does not|didn't|did not|don't) (?:match|handle|exist|support|account|respect|include|set)
    that(?:'s| is) the (?:issue|problem|bug|culprit)
    mismatch|inconsisten\w+
    only (?:includes?|checks?|handles?|supports?)
    (?:can lead|leads) to
    """
)

CLEANUP: Final = phrases(
    r"""
    (?:print|debug|logging) statements?
    (?:add|insert|put)\w* (?:\w+ ){0,3}prints?
    no longer needed
    clean(?:ing)? ?up
    temporary (?:files?|scripts?)
    (?:remove|delete) (?:the |my )?(?:reproduc\w+|test script|debug\w*)
    unused imports?
    formatting|typo|with tabs|proper indentation
    (?:lint(?:er|ing)?|compil\w+|build|type) (?:errors?|issues?|warnings?|problems?|complain\w*)
    (?:syntax|indentation|quoting|escaping)(?: errors?| issues?| problems?)?
    i apologi[sz]e|try again
    (?:bash|code|command|one|same|single) blocks?|in one go|(?:one|single) command|heredoc|(?:in|into) two steps
    made (?:a|the|the same|another) mistake|i forgot|but (?:i )?did(?:n't| not)|correct this|carefully
    but i (?:used|added|made)|previous (?:replacement|response|command)
    commit(?:ted)? (?:the|these|my|all) changes
    all (?:the )?tests pass
    """
)
"""It repairs its own slips, or tidies up."""

SET_UP: Final = phrases(
    r"""
    easy to set up|set(?:ting)? (?:it |things |this |everything )?up (?:first|properly|correctly)
    (?:write|create|use|make|using|writing|creating) (?:a|an|the|one|my) (?:\w+ ){0,2}<aid> <use>
    (?:create|make|write|build)\w* an? (?:\w+ ){0,3}<aid>
    (?:in|into) a script|&&|insert (?:it |them )?(?:after|at|before) (?:line )?\d+
    connect\w* to (?:the|a) (?:\w+ ){0,3}(?:server|challenge|service)
    worth (?:investigating|checking|looking|exploring|trying)
    search for (?:the|a) \S+ file
    """,
    aid="script, file, directory, folder, helper, app, project, program",
    use="first, (?:to|that) (?:generate|create|apply|edit|overwrite|replace|write|do|make|modify|update|insert|run)",
)
"""It sets up the work: a helper script, a place to try things."""

LEAD_IN: Final = phrases(
    r"""
    ^(?:[^,.]{0,60}, )?(?:so |then |now )?i(?:'d| would|'ll)? (?:say|suggest|recommend|propose|do|go with|think)\W*$
    ^(?:and |then |now |so |but )*(?:around|at|in|on|near) line \d+[^.]*:$
    ^(?:here(?:'s| is| are)|as follows|the following|these are|this is)\b[^.]*:$
    """
)
"""It introduces what comes next."""

TESTING: Final = phrases(
    r"""
    (?:add|updat|fix|writ|creat|run|adjust|modif|need|extend|improv|restor)\w* (?:\S+ ){0,6}?tests?
    test (?:cases?|files?|methods?|functions?|coverage)
    reproduc(?:e|es|ed|ing|tion)
    (?:reproduc|verif)\w*_?\w*\.py
    (?:add|updat|fix|extend|complet)\w* (?:\S+ ){0,4}?(?:mocks?|(?:test|reproduction|debug) script|the script)
    (?:dummy|minimal|standalone) (?:\w+ )?(?:app|module|project|environment|script|director(?:y|ies))
    scripts? (?:to|that|which) (?:check|verif|confirm|test|see|debug|print|show)\w*
    """
)

DOUBTS: Final = phrases(
    r"""
    ^(?:wait|hmm|maybe|perhaps|what if|or maybe|actually, wait|but wait|could it be|is it)
    ^if\b
    i wonder|or maybe
    should (?:probably )?[^.;]* or (?:just|simply|maybe|remove|use|to)
    """
)

DIRECTS: Final = phrases(
    r"""
    ^(?:do not|don't|never|avoid|defer|default to|prefer|keep|leave|skip|drop|stick|stay)
    ^(?:for [^:]{2,40}: )?(?:you|we)(?:'ll)? (?:need to|should|must) (?!<looks>)\w+
    ^(?:i |we |you )?could (?:also |just |instead )?(?!you\b|<looks>)\w+
    """.replace("<looks>", _LOOKS)
)
"""In advice: it tells the user what to do or to leave out."""

OFFERS: Final = phrases(
    r"""
    ^(?:(?:the|my|your|suggested|recommended|possible|immediate) )*next steps?\b
    ^(?:if|when|unless) (?:you|the user|they)
    let me know|would you like|feel free
    please (?:let|provide|confirm)
    """
)

RETELLS: Final = phrases(
    r"""
    ^(?:so |but |and |okay,? |ok,? |now |here )*(?:the|this) <who>(?: description| message)?(?: \w+)? <tells>
    ^they(?:'re| are)? (?:want|ask|asking|noting|saying|mention)\w*
    ^the suggested fix
    ^to (?:confirm|clarify|recap|summari[sz]e)\b
    ^(?:this|that|it) (?:is|was|might be|may be|could be) (?:probably |likely )?because
    ^(?:this|that|it) (?:seems|looks|appears|makes sense)
    ^as (?:suggested|requested|expected)
    ^(?:this|that|it|which) (?:will|makes|gives|provides|ensures|allows|lets|helps|lays)
    ^(?:this|that) should (?:keep|ensure|make|fix|help|work|allow|prevent|be (?:enough|fine|safe))
    """,
    who="user, pr, issue, task, description, problem statement, message, error, output, question",
    tells="wants?, asks?, is asking, mentions?, suggests?, says, said, points?, is pointing, notes?, is noting,"
    "reports?, shows?, indicates?, states?, requires?, needs?, would like",
)
"""It repeats what somebody else wants or says, or states the result of a choice."""

REPEATS: Final = phrases(r"^(?:and |but )?(?:now|next|then|also|finally|similarly|likewise)\b[, ]")

ANNOUNCES: Final = phrases(r"^(?:now |first,? |next,? )?(?:let me|let's|i'll|i will)")

SUMMARY: Final = phrases(
    r"""
    ^(?:done|perfect|great|excellent|summary|successfully|everything|final)
    ^all (?:tests|done|set|changes)
    ^the (?:fix|task|implementation|changes?|work) (?:is|are|has been) (?:now )?(?:complete|done|in place)
    ^here's (?:a|the|what)
    ^i've (?:successfully|completed|now)
    """
)

QUESTION: Final = re.compile(r"\?\s*[)\"'*]*$")
