"""The pictures of the README show what there is now. After a change: .venv/bin/python docs/pictures.py"""

import ast
import runpy
from xml.sax.saxutils import escape

from tests.docs.pages import ROOT

PICTURES = ROOT / "docs" / "pictures"


def test_the_architecture_is_drawn_from_its_table() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["draw_architecture"]()
    assert (PICTURES / "architecture.svg").read_text(encoding="utf-8") == drawn


def test_the_recording_has_the_words_of_the_demo() -> None:
    drawn = (PICTURES / "crash-and-resume.svg").read_text(encoding="utf-8")
    tree = ast.parse((ROOT / "examples" / "demo.py").read_text(encoding="utf-8"))
    story = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    calls = [node for node in ast.walk(story) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "title"]
    titles = [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]
    assert len(titles) == 4
    assert [title for title in titles if escape(str(title)) not in drawn] == []
