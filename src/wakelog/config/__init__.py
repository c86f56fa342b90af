"""Settings, where each comes from, and the user's folders on this machine."""
