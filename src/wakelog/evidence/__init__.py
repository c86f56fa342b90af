"""Evidence that is kept outside the store: signed notes, and an append-only log of heads with proofs (RFC 6962)."""
