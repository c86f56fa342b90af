"""All commands: the module of each, and its short help. Plain data, so that completion loads fast."""

from __future__ import annotations

# name → (module below wakelog.cli.commands, short help). Sections are shown in this order by `wakelog help -a`.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at sessions": {
        "status": ("status", "Show a session's status and pending calls."),
        "ls": ("ls", "List the sessions of this store."),
        "log": ("log", "Show a session turn by turn, newest first."),
        "show": ("show", "Show one turn, event or commit in full."),
        "calls": ("calls", "List calls: tool, input, outcome, time, cost, changes."),
        "state": ("state", "Show the state, or one key of it, at any point."),
        "diff": ("diff", "Show what changed between two points, by whom and why."),
        "compare": ("compare", "Compare attempts, forks or sessions; find where they differ."),
        "attempts": ("compare", "List the attempts at a turn, and how they differ."),
        "files": ("diff", "List the files changed in the last turns."),
        "blame": ("state", "Show who last wrote each key of the state."),
        "why": ("why", "Show where something came from, and how that is known."),
        "insight": ("insight", "Show what the agent decided, derived from its words."),
        "taint": ("why", "Show everything influenced by a source."),
        "context": ("context", "Show what the model saw at a point, or would see now."),
        "brief": ("context", "Write the handoff for the next run, machine or agent."),
        "known": ("known", "Ask what earlier sessions knew about a thing."),
        "preferences": ("preferences", "Show, add and remove the preferences of people."),
        "patterns": ("patterns", "Show what sessions do again and again."),
        "plans": ("plans", "List, endorse and run plans made from proven chains."),
        "compare-cohorts": ("patterns", "Compare two sets of sessions: what differs."),
        "search": ("search", "Find words in everything said, done and decided."),
        "query": ("search", "Run read-only SQL over the documented views."),
        "tail": ("tail", "Stream events live."),
        "ps": ("ps", "List sessions that are live, waiting or in trouble."),
        "pending": ("pending", "List calls and questions that wait for a person."),
        "watch": ("watch", "Watch live sessions and flag problems."),
        "cost": ("cost", "Show what was spent; every amount counts once."),
        "rollup": ("rollup", "Sum up work by turn, phase, session, project or day."),
        "git": ("git", "Link commits in git to the turns behind them."),
    },
    "Go back, fork and settle": {
        "rewind": ("rewind", "Move the view back; nothing is removed."),
        "undo": ("rewind", "Revert the newest rewind."),
        "redo": ("rewind", "Revert the newest undo."),
        "op": ("op", "List the operations on a session, and go back to one."),
        "fork": ("fork", "Create a session that shares the history up to a point."),
        "adopt": ("fork", "Take the result of a fork back into its parent."),
        "resume": ("life", "Continue a session, and show its status."),
        "replay": ("replay", "Run recorded turns again, against recorded results."),
        "bisect": ("bisect", "Find the first bad turn, in a few tests."),
        "compact": ("context", "Replace a part of the conversation with a summary."),
        "expand": ("context", "Revert a compaction."),
        "reconcile": ("pending", "Record the outcome of a call that was interrupted."),
        "approve": ("pending", "Approve a call that waits."),
        "deny": ("pending", "Deny a call that waits."),
        "answer": ("pending", "Answer a question that the agent asked."),
        "abandon": ("pending", "Give up on a pending call."),
        "checkpoint": ("checkpoint", "Name a point."),
        "note": ("checkpoint", "Add a note to an event or a session."),
        "accept": ("insight", "Record a derived decision as a real one."),
        "budget": ("cost", "Show or set what a session may spend."),
        "flag": ("watch", "List, raise and clear flags."),
        "pause": ("life", "Pause a session until it is resumed."),
        "close": ("life", "End a session, and settle its open calls."),
        "cancel": ("life", "Stop a session, and its sub-agents, for a reason."),
        "reopen": ("life", "Reopen a closed or archived session."),
        "archive": ("archive", "Archive a closed session, or sessions as Parquet."),
        "delete": ("life", "Delete a session permanently; a tombstone stays."),
    },
    "Check and protect": {
        "verify": ("verify", "Check whether a session was altered."),
        "anchor": ("anchor", "Export head hashes, signed if you like, for later tamper checks."),
        "anchor-key": ("anchor", "Make a key that signs anchors."),
        "audit": ("audit", "Write a report for auditors: what happened, and is it intact."),
        "endorse": ("why", "Record that events can be trusted."),
        "invalidate": ("why", "Record that steps were wrong; show what depends on them."),
        "redact": ("erase", "Find stored secrets, and erase them."),
        "erase": ("erase", "Erase the content of events, here and in forks."),
        "hold": ("hold", "Protect sessions from erasing, pruning and deleting."),
    },
    "Import, export and store": {
        "export": ("export", "Write a session to a file."),
        "import": ("imports", "Import transcripts of coding agents, and bundles."),
        "gc": ("gc", "Apply retention: show what would go, then do it."),
        "store": ("store", "Inspect, check, copy and back up the store."),
    },
    "Connect agents and programs": {
        "enable": ("enable", "Record a coding agent: Claude Code, Codex or Gemini CLI."),
        "disable": ("enable", "Stop recording a coding agent."),
        "hook": ("hook", "Record what a coding agent reports (run by its hooks)."),
        "ui": ("ui", "Open the web page on this store."),
        "serve": ("serve", "Serve this store over HTTP."),
        "project": ("project", "Keep the index up to date, alone or with others."),
        "key": ("serve", "Manage the keys of the server."),
        "conformance": ("conformance", "Check a server against the protocol."),
        "mcp": ("mcp", "Serve this store to an agent over MCP."),
        "proxy": ("mcp", "Record the tool calls of any MCP server."),
        "record": ("record", "Run a command, and record its model calls."),
        "webhooks": ("webhooks", "Send flags, approvals and failures to other programs."),
        "otel": ("otel", "Send sessions to OpenTelemetry, and receive them."),
    },
    "Set up and learn": {
        "demo": ("demo", "Create sessions to play with, in a scratch store."),
        "doctor": ("doctor", "Check this installation and store."),
        "config": ("config", "List, read and change settings."),
        "schema": ("schema", "Print the JSON Schemas of what is written as JSON."),
        "completion": ("help", "Print shell completion for bash, zsh or fish."),
        "help": ("help", "Show help on wakelog, or on one command; -a lists all."),
    },
}
FIRST_COMMANDS = (
    *("status", "ls", "log", "show", "diff", "why", "search", "rewind", "undo", "resume", "verify"),
    *("import", "enable", "ui", "demo"),
)
"""What `wakelog --help` shows: enough for the first day."""
OTHER_WORDS = {
    **{"list": "ls", "sessions": "ls", "history": "log", "events": "log --events", "continue": "resume"},
    **{"version": "--version", "tag": "checkpoint", "grep": "search", "find": "search", "restore": "rewind"},
    **{"kill": "cancel", "init": "store create", "stats": "cost", "usage": "cost"},
}
"""What other tools call a command, and what to type here."""
ALIASES = {"st": "status", "branch": "fork", "fsck": "verify", "reset": "rewind"}

# quick_completion.py completes the first argument of these commands; they are the ones typed most.
TAKES_PLACE = frozenset(
    (
        *("status", "log", "show", "calls", "diff", "files", "why", "insight", "context", "brief"),
        *("rewind", "fork", "export"),
    )
)
TAKES_SESSION = frozenset(("tail", "resume", "pause", "close", "cancel", "reopen", "archive", "delete", "verify"))


def matching_commands(prefix: str) -> list[tuple[str, str]]:
    """The commands whose name starts with `prefix`, each with its short help."""
    rows = [(name, text) for section in SECTIONS.values() for name, (_, text) in section.items()]
    return [(name, text) for name, text in rows if name.startswith(prefix)]
