"""What several looking commands show alike: tables, sessions, turns, events, values and changes.

Each file turns one kind of thing into lines for people and into plain JSON for machines. Recorded text passes through
`text.inert` on its way to a line, here and nowhere else.
"""
