"""Rules over the live log: each looks at events in order, and points at what somebody should see."""
