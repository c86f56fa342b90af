"""Every question that an index answers, by its name in a server's routes, with its type of answer."""

from __future__ import annotations

from typing import Any

from wakelog.index.questions import QUESTIONS, IndexQuestion
from wakelog.knowledge.questions import KNOWLEDGE
from wakelog.patterns.questions import PATTERNS

ALL_QUESTIONS: dict[str, tuple[type[IndexQuestion], Any]] = {**QUESTIONS, **KNOWLEDGE, **PATTERNS}
