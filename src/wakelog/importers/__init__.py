"""Transcripts of other programs, brought into the log.

A coding agent writes what it did into a file of its own format. Each format has one leaf file here, which reads it into
a few plain steps (steps.py); session_writer.py makes the events. So every question that can be asked of a session can
be asked of those agents too. The files are only read, and a second import adds only what is new.

    formats.py          the formats, and how a file's format is told
    found.py            which transcripts are on this machine
    transcript_import.py    the job: files in, a report out
"""
