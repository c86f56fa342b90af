"""What earlier sessions knew: questions about things, facts that hold or contradict each other, and recall."""
