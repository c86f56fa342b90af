"""Where something came from and where it went: why, taint, trust, blast radius."""
