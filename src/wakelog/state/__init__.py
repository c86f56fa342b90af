"""Pure folding: what an event does to the state, applying it, comparing states. No I/O."""
