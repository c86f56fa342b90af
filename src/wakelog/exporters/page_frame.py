"""What exported pages share: their head, their style, and how recorded text becomes harmless.

The style is light or dark like the reader's system, and readable in print. Its colours are those of the web page
(ui/src/theme.css). A page loads nothing, and its head forbids the browser to.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Final

from wakelog.model.hidden_characters import show_hidden

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--page:#fff;--box:#f6f7f9;--line:#dfe3e8;--user:#e8eefc;
--link:#1d4ed8;--tool:#0b6b63;--warn:#9a3412;--bad:#b91c1c;--ins:#e7f6ea;--del:#fdecec}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ee;--dim:#9aa4af;--page:#0f1115;--box:#161a20;--line:#2a313b;
--user:#1a2440;--link:#93b4ff;--tool:#5eead4;--warn:#fdba74;--bad:#fca5a5;--ins:#12291b;--del:#311a1d}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:56rem;margin:0 auto;padding:2rem 1.25rem 4rem;min-width:0}
main>header{padding-bottom:.4rem}
h1{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:2rem 0 .6rem;border-top:1px solid var(--line);padding-top:1rem;scroll-margin-top:.5rem}
h4{margin:.6rem 0 .2rem;font-size:.78rem;color:var(--dim);text-transform:capitalize}
.goal{margin:.4rem 0 0;color:var(--dim);font-size:1rem;overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:.5rem 1.75rem;margin:1rem 0 0}.facts div{min-width:0}
dt{color:var(--dim);font-size:.75rem;text-transform:capitalize}dd{margin:0;overflow-wrap:anywhere}
small,.place{color:var(--dim);font-size:.8rem}h2 small{margin-left:.8rem;font-weight:normal}
.place{float:right;text-decoration:none;font-variant-numeric:tabular-nums;margin-left:.8rem}
a.place:hover{color:var(--link);text-decoration:underline}
pre{margin:.3rem 0;white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.5 ui-monospace,Menlo,Consolas,monospace}
code{font:.87em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
section{margin:.6rem 0;padding:.6rem .9rem;border-radius:.5rem;border:1px solid var(--line)}
section>header{font-size:.85rem;margin-bottom:.2rem}
section.user{background:var(--user);border-color:transparent}section.other{background:var(--box)}
.prose{max-width:88ch}.prose p{margin:0 0 .55rem;white-space:pre-wrap;overflow-wrap:anywhere}
.prose p:last-child,.prose p.item{margin-bottom:0}.prose p.item{padding-left:1.1em;text-indent:-1.1em}
.prose p.item+p:not(.item){margin-top:.55rem}
.prose .d1{margin-left:1.2em}.prose .d2{margin-left:2.4em}.prose .d3,.prose .d4{margin-left:3.6em}
.prose .heading{font-weight:650;margin-top:.6rem}.prose .quote{border-left:3px solid var(--line);padding-left:.7rem;
color:var(--dim)}
.prose code{background:var(--box);border-radius:4px;padding:.05rem .3rem}
.prose .code{background:var(--box);border:1px solid var(--line);border-radius:.4rem;padding:.5rem .7rem;margin:.4rem 0}
details{display:flow-root;margin:.25rem 0;padding:.3rem .9rem;background:var(--box);border-radius:.5rem}
details>:not(summary){clear:both}
summary{cursor:pointer;overflow-wrap:anywhere}summary b{color:var(--tool);font-weight:600}
details.aside summary,details.aside summary b{color:var(--dim)}
.bad summary b,.bad summary small,p.bad{color:var(--bad)}p.row{margin:.35rem .9rem;overflow-wrap:anywhere}
p.row b{color:var(--dim);font-weight:600;margin-right:.3rem}
mark{background:none;color:var(--warn);font-size:.8rem}
.derived{margin:.4rem 0;padding-left:1.2rem;color:var(--dim)}.derived a{color:inherit}
.diff ins,.diff del,.diff span{display:inline-block;min-width:100%;text-decoration:none}
.diff ins{background:var(--ins)}.diff del{background:var(--del)}
:target{outline:2px solid var(--link);outline-offset:2px}
nav{display:none}
@media (min-width:75rem){
body{display:grid;grid-template-columns:17rem minmax(0,1fr)}main{grid-column:2;grid-row:1}
nav{display:block;grid-column:1;grid-row:1;position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;
padding:1.5rem .5rem 2rem;border-right:1px solid var(--line);background:var(--box);height:100vh}
nav ol{list-style:none;margin:0;padding:0}
nav a{display:block;padding:.3rem .7rem;border-radius:.4rem;color:var(--ink);text-decoration:none;font-size:.85rem;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
nav a:hover{background:var(--line)}nav b{color:var(--dim);font-weight:600;margin-right:.4rem}}
@media print{nav{display:none}body{display:block}details{break-inside:avoid}}
"""


def page_head(title: str, style: str = "") -> Iterator[str]:
    """The page up to the start of its body."""
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{safe(title)}</title>\n'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"


def safe(text: str) -> str:
    """Recorded text as HTML."""
    return html.escape(show_hidden(text))
