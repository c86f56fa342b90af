"""What was masked in an export, said on stderr: by kind, how often, and in which events."""

from __future__ import annotations

import click

from wakelog.cli.context import CommandContext
from wakelog.cli.text import counted
from wakelog.exporters.share_mask import MaskReview

EVENTS = 12
_WORDS = {"user": "user name in a path", "own-word": "own word"}


def say_review(ctx: CommandContext, review: MaskReview, *, dry_run: bool) -> None:
    """The review, also when there is nothing in it: that is an answer too."""
    verb = "would be masked" if dry_run else "masked"
    if not review.total:
        click.echo(f"nothing {verb}: no secrets, own words or home folders were found", err=True)
        return
    count, events = review.total, len(review.events)
    places = f"{counted(count, 'place')} in {counted(events, 'event')}"
    click.echo(f"{places} {verb}:", err=True)
    for kind, found in sorted(review.kinds.items()):
        shown = " ".join(f"e{seq}" for seq in sorted(found)[:EVENTS])
        more = f" and {len(found) - EVENTS} more" if len(found) > EVENTS else ""
        click.echo(f"  {_WORDS.get(kind, kind):<20} {sum(found.values()):>5}  {shown}{more}", err=True)
    ctx.suggest("look the file through before you share it: rules know forms, not meanings")
