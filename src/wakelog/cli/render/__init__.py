"""What several commands show alike: tables, sessions, turns, events, values and changes.

Each file turns one kind of thing into lines for people and into plain JSON for programs. Recorded text passes through
`text.inert` here, before it becomes a line.
"""
