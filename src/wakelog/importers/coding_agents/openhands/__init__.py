"""OpenHands, before and since v1."""
