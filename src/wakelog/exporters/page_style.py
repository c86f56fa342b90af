"""How a page looks: light and dark as the reader's system has it, readable in print."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c1c1e;--dim:#6b6b70;--page:#fff;--box:#f5f5f7;--line:#dcdce0;--user:#e8f0fe;
--warn:#8a5a00;--bad:#b3261e;--ins:#e3f5e6;--del:#fde7e5}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6ea;--dim:#9a9aa2;--page:#17171a;--box:#212126;--line:#36363d;
--user:#1f2b40;--warn:#e0b050;--bad:#ff8a80;--ins:#173a20;--del:#46201d}}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.4rem;margin:0}
h2{font-size:1.1rem;margin:2.2rem 0 .6rem;border-top:1px solid var(--line);padding-top:1rem}
h4{margin:.5rem 0 .2rem;font-size:.8rem;color:var(--dim)}
small,.facts,.place{color:var(--dim);font-size:.8rem}h2 small{margin-left:.8rem;font-weight:normal}
.place{float:right;text-decoration:none}
pre{margin:.3rem 0;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 ui-monospace,monospace}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
section{margin:.6rem 0;padding:.5rem .8rem;border-radius:.5rem;border:1px solid var(--line)}
section pre{font:inherit}section.user{background:var(--user)}section.other{background:var(--box)}
details{margin:.25rem 0;padding:.25rem .8rem;background:var(--box);border-radius:.5rem}
summary{cursor:pointer}details.aside summary{color:var(--dim)}
.bad summary b,.bad summary small,p.bad{color:var(--bad)}p.row{margin:.25rem .8rem}
mark{background:none;color:var(--warn);font-size:.8rem}
.derived{margin:.4rem 0;padding-left:1.2rem;color:var(--dim)}.derived a{color:inherit}
.diff ins,.diff del,.diff span{display:inline-block;min-width:100%;text-decoration:none}
.diff ins{background:var(--ins)}.diff del{background:var(--del)}
@media print{details{break-inside:avoid}}
"""
