"""What people would use instead, one file a library, each used as its own documentation shows.

Where a library stores only what it is given (items, steps, keys), the turn's delta is stored as one more of them and
folded by the reader; where there was a choice, the one that is better for the library was taken, and its note says so.
"""
