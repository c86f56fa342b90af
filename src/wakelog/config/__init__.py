"""Settings, where each comes from, and the folders of this machine."""
