"""`wakelog otel`: exports sessions as spans of OpenTelemetry, and imports spans as sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog import otlp
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import NO, extra_needed
from wakelog.cli.options import force_option, place_argument
from wakelog.cli.output import STDOUT, writing_to
from wakelog.cli.text import inert_line
from wakelog.config.folders import store_folder
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.exporters.session_spans import session_documents
from wakelog.exporters.span_sender import SpanSender
from wakelog.importers.transcript_import import ImportReport
from wakelog.model.short_text import pluralize
from wakelog.session import Session


class ExportedSpans(msgspec.Struct):
    """The result of an export."""

    to: str
    sessions: int = 0
    spans: int = 0
    rejected: int = 0
    """Spans that the collector rejected."""
    message: str = ""
    """The collector's reason."""
    problems: dict[str, str] = {}
    """Sessions that could not be read, and why."""


@click.group("otel")
def otel_command() -> None:
    """Send sessions to OpenTelemetry as spans, and import the spans of traced agents as sessions. Both use the names
    of its conventions for generative AI.

    Examples:
      wakelog otel export fix-bug --to http://127.0.0.1:4318
      wakelog otel serve
    """


@otel_command.command("export")
@place_argument("where", "[SEL|RANGE]")
@click.option("-A", "--all", "everything", is_flag=True, help="Export all sessions of the store.")
@click.option(
    "--to", default=STDOUT, metavar="URL|FILE", help="Send to a collector, a file, or - for stdout (default)."
)
@click.option("--content", is_flag=True, help="Include what was said, and the input and output of calls.")
@click.option(
    "--protocol",
    type=click.Choice(["http/json", "http/protobuf"]),
    help="Send with this protocol (default: OTEL_EXPORTER_OTLP_PROTOCOL, or http/json).",
)
@force_option
@common
def export(
    ctx: CommandContext, where: str, everything: bool, to: str, content: bool, protocol: str | None, force: bool
) -> int:
    """Write a session as spans, or send it to a collector over OTLP/HTTP.

    A session is one trace: `session NAME`, below it an `invoke_agent` for each attempt at a turn, and in it a `chat`
    for each answer of a model and an `execute_tool` for each call. Each span names its events, so that you find them
    with `wakelog show`. Words, inputs and outputs are left out unless you pass --content. The same event is the same
    span in every export. Headers with a key come from OTEL_EXPORTER_OTLP_HEADERS.

    Examples:
      wakelog otel export fix-bug --to http://127.0.0.1:4318
      wakelog otel export fix-bug@3..@5 --to spans.jsonl --content
      wakelog otel export --all --to https://otel.example --protocol http/protobuf
    """
    if everything and where:
        raise click.UsageError("name a session, or use --all")
    is_collector = to.startswith(("http://", "https://"))
    if protocol and not is_collector:
        raise click.UsageError("--protocol is for a collector: a file holds OTLP's JSON, one document a line")
    result = ExportedSpans(inert_line(to))
    if is_collector:
        _send(ctx, SpanSender(to, protocol=protocol or ""), where, everything, content, result)
    else:
        with writing_to(to, force=force) as out:
            for document in _documents(ctx, where, everything, content, result):
                result.spans += sum(1 for _ in otlp.spans_in(document))
                out.write(otlp.as_json(document) + b"\n")
    for session, why in result.problems.items():
        ctx.warn(f"{session} cannot be exported: {inert_line(why)}")
    if to != STDOUT:
        ctx.answer("otel-export", result, _lines(result))
    return NO if result.problems or result.rejected else 0


def _send(
    ctx: CommandContext, sender: SpanSender, where: str, everything: bool, content: bool, result: ExportedSpans
) -> None:
    try:
        for document in _documents(ctx, where, everything, content, result):
            spans = sender.send(document)
            result.spans += spans.spans
            result.rejected += spans.rejected
            result.message = result.message or inert_line(spans.message)
    finally:
        sender.close()


def _lines(result: ExportedSpans) -> Iterator[str]:
    yield f"Exported {pluralize(result.spans, 'span')} of {pluralize(result.sessions, 'session')} to {result.to}"
    if result.rejected:
        yield f"The collector rejected {pluralize(result.rejected, 'span')}: {result.message or 'it does not say why'}"


def _documents(
    ctx: CommandContext, where: str, everything: bool, content: bool, result: ExportedSpans
) -> Iterator[dict[str, Any]]:
    if not everything:
        place = ctx.place(where)
        result.sessions = 1
        yield from session_documents(place.session, place.text, content=content)
        return
    for head in ctx.store.sessions():
        try:
            session: Session[Any] = ctx.store.resume(head.session)
            yield from session_documents(session, content=content)
        except NotFoundError:
            continue  # deleted in the meantime
        except CorruptLogError as exc:
            result.problems[head.name or head.session] = exc.message
            continue
        result.sessions += 1


@otel_command.command("serve")
@click.option("--host", default="127.0.0.1", help="Listen on this address (default: loopback).")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4318, help="Listen on this port (default: 4318; 0: any)."
)
@click.option("--host-name", "host_names", multiple=True, metavar="NAME", help="Accept this host name (repeat).")
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(0),
    default=30.0,
    metavar="SECONDS",
    help="Import a trace without its root after this time (default 30).",
)
@click.option("--spool", type=click.Path(file_okay=False, path_type=Path), help="Keep waiting spans in this folder.")
@common
def serve(
    ctx: CommandContext, host: str, port: int, host_names: tuple[str, ...], idle_s: float, spool: Path | None
) -> None:
    """Receive spans over OTLP/HTTP, and import them as sessions, until stopped.

    Point an agent's exporter here: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318, with the protocol http/protobuf
    or http/json. Each conversation becomes a session, and so does each trace that names no conversation. Traces without
    spans of generative AI are left out. Spans are on disk before they are acknowledged. A trace is imported when its
    root has arrived, or after --idle. On any address but loopback, senders need the token in WAKELOG_OTEL_TOKEN, as
    OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer TOKEN".

    Examples:
      wakelog otel serve
      wakelog otel serve --port 0 --json
    """
    with extra_needed("the receiver", "otel"):
        from wakelog.http import server as serving
        from wakelog.http.trace_intake import TraceImports, TraceIntake, require_token, run_intake
    from wakelog.importers.event_streams.otel.span_spool import SpanSpool

    token = os.environ.get("WAKELOG_OTEL_TOKEN", "")
    require_token(host, token)
    store = ctx.new_store()
    with closing(SpanSpool(spool or store_folder("otel", ctx.identity(store)), idle_s=idle_s)) as spans:
        sock = serving.listen(host, port)
        serving.log_to_stderr(as_json=not sys.stderr.isatty())
        url = serving.url_of(host, sock)
        data = {"url": url, "store": hide_password(ctx.url), "spool": str(spans.folder), "token": bool(token)}
        ctx.answer("otel-serve", data, f"Receiving spans at {url}/v1/traces; stop with Ctrl-C")
        ctx.flush()
        with TraceImports(spans, store, on_import=partial(_report, ctx)):
            run_intake(TraceIntake(spans, token=token, host_names=(host, *host_names)), sock)


def _report(ctx: CommandContext, report: ImportReport) -> None:
    for session in report.sessions:
        if session.records:
            counts = {"spans": session.records, "events": session.events}
            amounts = f"{pluralize(session.records, 'span')}, {pluralize(session.events, 'event')}"
            line = f"{inert_line(session.name)}  {amounts}"
            ctx.tell("otel-intake", {"session": session.session, "name": session.name, **counts}, line)
