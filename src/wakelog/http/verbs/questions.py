"""The index's questions as the library asks them: one route for each, with all its parameters."""

from __future__ import annotations

from typing import Any

from wakelog.http.routes import Call, route
from wakelog.index.questions import QUESTIONS, Asked


def _enter(asked: Asked) -> None:
    def verb(call: Call, body: Any) -> Any:
        given = {name: getattr(body, name) for name in asked.struct.__struct_fields__}
        return getattr(call.space.store.index, asked.name)(**given)

    verb.__name__, verb.__doc__ = f"ask_{asked.name}", asked.doc
    verb.__annotations__ = {"body": asked.struct, "return": asked.answer}
    route("POST", asked.path)(verb)


for _each in QUESTIONS.values():
    _enter(_each)
