"""Transcripts of other programs, brought into the log.

A coding agent writes what it did into a file of its own format. Each format has a file or a folder here, which reads it
into a few plain steps (steps.py); writer/ makes the events. So every question that can be asked of a session can be
asked of those agents too. The files are only read, and a second import adds only what is new.

    formats.py              the formats, and how a file's format is told
    found.py                which transcripts are on this machine
    transcript_import.py    the job: files in, a report out
    steps.py                what a transcript says, in words that all formats share

    coding_agents/          Claude Code, Codex, Gemini CLI, Cursor, OpenCode, Cline, Aider, pi, OpenHands
    benchmarks/             SWE-agent, mini-swe-agent, tau-bench, Inspect
    frameworks/             LangGraph, OpenAI Agents, Google ADK
    event_streams/          AG-UI, OpenTelemetry

    source/                 reads files and databases of other programs
    common/                 what several formats share
    writer/                 steps into events
"""
