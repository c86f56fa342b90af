"""Imports transcripts of other programs into the log.

A coding agent writes what it did into a file in its own format. Each format has a file or a folder here that reads it
into a few plain steps (steps.py); writer/ turns the steps into events. So you can query those agents like any other
session. The source files are only read, and a second import adds only what is new.

    formats.py              the formats, and how the format of a file is detected
    discovery.py            finds the transcripts on this machine
    transcript_import.py    the job: files in, a report out
    steps.py                what a transcript says, in terms that all formats share

    coding_agents/          Claude Code, Codex, Gemini CLI, Cursor, OpenCode, Cline, Copilot, Aider, SpecStory, pi,
                            OpenHands
    benchmarks/             SWE-agent, mini-swe-agent, tau-bench, Inspect
    frameworks/             LangGraph, OpenAI Agents, Google ADK
    event_streams/          AG-UI, OpenTelemetry

    source/                 reads files and databases of other programs
    common/                 code that several formats share
    writer/                 turns steps into events
"""
