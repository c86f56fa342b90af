"""What our server answers while the kit runs fits docs/reference/protocol.schema.json."""

import json
import re
from collections import Counter

import pytest
from jsonschema import Draft202012Validator

from docs.protocol import OPERATIONS, SCHEMA
from tests.conformance.broken import Forward, WholeAnswer, WholeRequest, serving_broken
from wakelog.conformance import run
from wakelog.http.routes import Route, all_routes

PATHS = [
    (method, path, re.compile(re.sub(r"\{\w+\}", "[^/]+", path))) for method, path in sorted(OPERATIONS, reverse=True)
]


def _operation(request: WholeRequest) -> tuple[str, str] | None:
    return next(((m, p) for m, p, fits in PATHS if m == request.method and fits.fullmatch(request.path)), None)


def _definition(route: Route) -> str:
    name = str(getattr(route.answer, "__name__", ""))
    return "Page_SessionInfo_" if name == "Page" else name


def test_every_answer_fits_its_schema() -> None:
    whole = json.loads(SCHEMA.read_text(encoding="utf-8"))
    answers: dict[tuple[str, str], str] = {(r.method, r.full_path): _definition(r) for r in all_routes()}
    validators = {
        name: Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}) for name in whole["$defs"]
    }
    seen: Counter[tuple[str, str] | None] = Counter()
    wrong: list[str] = []

    async def look(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if request.path.endswith("/tail"):
            return None
        answer = await forward(request)
        found = _operation(request)
        name = "Problem" if answer.status >= 400 else answers[found] if found else ""
        if name in validators and answer.body:
            seen[found] += answer.status < 400
            wrong.extend(
                f"{request.method} {request.path}: {e.message[:200]}" for e in validators[name].iter_errors(answer.json)
            )
        return answer

    with serving_broken("memory:") as serving:
        serving.broken.fault = look
        quick = ["sessions", "state", "events", "moving", "lifecycle", "leases", "errors", "integrity"]
        failed = [each.check for each in run(serving.url, serving.key, only=quick) if each.status == "failed"]
    assert failed == []
    assert wrong == []
    missed = {each for each in OPERATIONS if answers[each] in validators and not seen[each]}
    assert missed <= {("GET", "/v1/info")}, "asked by checks that are not run here"


@pytest.mark.parametrize("wrong", [{"seq": "1"}, {"session": 1}, {}])
def test_the_schema_can_say_no(wrong: dict[str, object]) -> None:
    whole = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert not Draft202012Validator({"$ref": "#/$defs/HeadAnswer", "$defs": whole["$defs"]}).is_valid(wrong)
