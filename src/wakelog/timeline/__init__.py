"""Finding a place in a session, and reading what stands there: selectors, slices, messages, files."""
