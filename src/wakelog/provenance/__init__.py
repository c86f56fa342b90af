"""Where something came from and what it influenced: why, taint, trust, blast radius."""
