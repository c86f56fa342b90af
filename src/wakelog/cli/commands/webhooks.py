"""`wakelog webhooks`: send flags, approvals, failures and budgets to other programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.render.table import say_table
from wakelog.cli.text import clock, inert_line
from wakelog.errors import NotFoundError, UnavailableError
from wakelog.key_source import write_secret
from wakelog.model.short_text import pluralize
from wakelog.webhooks.hook_states import HookState, hook_states, hooks_folder, open_positions, skip_message
from wakelog.webhooks.hooks_file import TOPICS, Webhook, add_hook, find_hook, read_hooks, remove_hook
from wakelog.webhooks.messages import make_message
from wakelog.webhooks.sender import WebhookPost, WebhookSender, WebhookSenders, WebhookSent
from wakelog.webhooks.signature import make_secret, secret_of

_FILE = click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Use this file of webhooks.")


@click.group("webhooks")
def webhooks_command() -> None:
    """Send signed messages about flags, approvals, failures and budgets to addresses of yours, as Standard Webhooks.

    Examples:
      wakelog webhooks secret --out ops.secret
      wakelog webhooks add ops https://ops.example --secret ops.secret --on flag
      wakelog webhooks run
    """


@webhooks_command.command("secret")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this new file, only for you.")
@common
def secret(ctx: CommandContext, out: Path | None) -> None:
    """Make a secret, for a webhook and its receiver. It is printed, or written to a file that only you can read.

    Example:
      wakelog webhooks secret --out ops.secret
    """
    new = make_secret()
    if out is not None:
        write_secret(new, out)
        ctx.answer("webhook-secret", {"file": str(out)}, f"Wrote a secret to {out}: give it to the receiver too")
        return
    ctx.answer("webhook-secret", {"secret": new}, new)


@webhooks_command.command("add")
@click.argument("name")
@click.argument("url")
@click.option(
    "--secret",
    "source",
    required=True,
    metavar="SOURCE",
    help="Sign with this secret: a file, env:NAME, keyring:S/NAME or command:CMD.",
)
@click.option("--on", "topics", multiple=True, type=click.Choice(TOPICS), help="Send these (repeat; default: all).")
@click.option("--severity", default="warning", help="Send flags of this severity and above (default: warning).")
@click.option("--content", is_flag=True, help="Include what flags, questions and errors say.")
@_FILE
@common
def add(
    ctx: CommandContext,
    name: str,
    url: str,
    source: str,
    topics: tuple[str, ...],
    severity: str,
    content: bool,
    file: Path | None,
) -> None:
    """Add a webhook, or change the one of that name. It gets messages about events after its first run.

    Example:
      wakelog webhooks add ops https://ops.example --secret env:OPS --on flag
    """
    hook = Webhook(name, url, source, topics or TOPICS, severity, content)
    secret_of(source)  # raises if the secret cannot be read
    add_hook(_file(ctx, file), hook)
    ctx.answer("webhook", _plain(hook), f"{inert_line(name)} gets {', '.join(hook.on)} at {hook.host}")
    ctx.suggest(f"wakelog webhooks test {name}", "wakelog webhooks run")


@webhooks_command.command("rm")
@click.argument("name")
@_FILE
@common
def rm(ctx: CommandContext, name: str, file: Path | None) -> None:
    """Remove a webhook, and forget its position.

    Example:
      wakelog webhooks rm ops
    """
    hook = remove_hook(_file(ctx, file), name)
    with closing(open_positions(_folder(ctx))) as positions:
        positions.forget(name)
    ctx.answer("webhook", _plain(hook), f"{inert_line(name)} is removed")


@webhooks_command.command("ls")
@_FILE
@common
def ls(ctx: CommandContext, file: Path | None) -> None:
    """List the webhooks, and how they are doing. Of an address only the host is shown; of a secret, only its source.

    Example:
      wakelog webhooks ls
    """
    states = hook_states(_folder(ctx), file)
    ctx.answer("webhooks", states, lambda: _show_states(ctx, states))


def _show_states(ctx: CommandContext, states: Sequence[HookState]) -> None:
    say_table(ctx, _COLUMNS, [_row(ctx, state) for state in states], none="There is no webhook.")
    for state in states:
        for refused in state.refused:
            event, since = f"{refused.session}@e{refused.event}", clock(refused.since, utc=ctx.utc)
            front = f"{inert_line(state.name)} does not accept {refused.type} of {event} since {since}"
            ctx.say(f"{front}: {refused.problem}")
            ctx.suggest(f"wakelog webhooks skip {state.name} {refused.session}")


_COLUMNS = "name 8 | host 12 | on | > sent | > skipped | problem 12"


def _row(ctx: CommandContext, state: HookState) -> tuple[str, ...]:
    since = f"since {clock(state.failing_since, utc=ctx.utc)}: {state.problem}" if state.failing_since else ""
    skipped = f"{state.skipped:,}" if state.skipped else ""
    return inert_line(state.name), state.host, " ".join(state.on), f"{state.sent:,}", skipped, since


@webhooks_command.command("skip")
@click.argument("name")
@click.argument("session", metavar="SESSION")
@_FILE
@common
def skip(ctx: CommandContext, name: str, session: str, file: Path | None) -> None:
    """Skip the message that a webhook refuses and that holds up a session. The receiver never gets it; the session's
    next message is sent instead. `wakelog webhooks ls` counts skipped messages. A running sender continues by itself.

    Example:
      wakelog webhooks skip ops fix-bug
    """
    skipped = skip_message(ctx.store, _folder(ctx), name, session, file)
    place = f"{session}@e{skipped.event}"
    ctx.answer("webhook-skipped", skipped, f"{inert_line(name)} never gets {skipped.type} of {inert_line(place)}")


@webhooks_command.command("test")
@click.argument("name")
@_FILE
@common
def test(ctx: CommandContext, name: str, file: Path | None) -> None:
    """Send one message of type `test` to a webhook now, and show the result.

    Example:
      wakelog webhooks test ops
    """
    hook = find_hook(read_hooks(_file(ctx, file)), name)
    at = ctx.store.clock()
    message = make_message(hook, f"test {at}", "test", at, {"store": "wakelog"})
    refusal = WebhookPost(hook).send(message, at // 1_000_000)
    if refusal is not None:
        raise UnavailableError(f"the message was not accepted: {refusal.problem}", kind="webhook-refused")
    ctx.answer("webhook-test", {"hook": name, "id": message.id}, f"{hook.host} accepted a test message ({message.id})")


@webhooks_command.command("run")
@click.option("--once", is_flag=True, help="Send what is due, and stop; exit code 1 when something was refused.")
@_FILE
@common
def run(ctx: CommandContext, once: bool, file: Path | None) -> int:
    """Send messages until stopped. A receiver that is down gets everything later, in order within each session.

    Run one process for each store. The position of each webhook is kept on disk: after a crash, messages may come
    twice, with the same `webhook-id`, and none is missing.

    Examples:
      wakelog webhooks run
      wakelog webhooks run --once --json
    """
    hooks = read_hooks(_file(ctx, file))
    if not hooks:
        raise NotFoundError(
            "there is no webhook", kind="webhook-not-found", hint="wakelog webhooks add NAME URL --secret SOURCE"
        )
    deliveries: list[WebhookSent] = []
    with closing(open_positions(_folder(ctx), writes=True)) as positions:
        told = deliveries.append if once else lambda sent: ctx.tell("webhook-sent", sent, _line(sent))
        senders = [WebhookSender(ctx.store, hook, positions, report=told) for hook in hooks]
        if not once:
            if ctx.is_for_people:
                ctx.say(f"Sending to {pluralize(len(hooks), 'webhook')}; stop with Ctrl-C")
                ctx.flush()
            WebhookSenders(senders, ctx.store, lambda why: ctx.warn(inert_line(why))).run()
            return 0
        for sender in senders:
            sender.step()
    ctx.answer("webhook-sent", deliveries, [_line(sent) for sent in deliveries] or ["There was nothing to send."])
    return NO if any(not sent.ok for sent in deliveries) or any(sender.waiting for sender in senders) else 0


def _line(delivery: WebhookSent) -> str:
    end = "" if delivery.ok else f"  not accepted: {delivery.problem}"
    return f"{inert_line(delivery.hook)}  {delivery.type}  {delivery.session}@e{delivery.event}{end}"


def _plain(hook: Webhook) -> dict[str, Any]:
    return {
        "name": hook.name,
        "host": hook.host,
        "secret_from": hook.secret.partition(":")[0] if ":" in hook.secret else "file",
        "on": list(hook.on),
        "severity": hook.severity,
        "content": hook.content,
    }


def _folder(ctx: CommandContext) -> Path:
    return hooks_folder(ctx.store, ctx.url)


def _file(ctx: CommandContext, file: Path | None) -> Path:
    return file or _folder(ctx) / "webhooks.toml"
