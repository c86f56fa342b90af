"""What an agent decided and why, derived from its words and calls if it did not record that itself."""
