"""What a call is about, in a few words."""

import pytest

from wakelog.model.call_gist import call_gist


@pytest.mark.parametrize(
    ("arguments", "gist"),
    [
        ({"command": "pytest -q"}, "pytest -q"),
        ({"command": "str_replace", "path": "/srv/shop/limit.py", "old_str": "1"}, "str_replace /srv/shop/limit.py"),
        ({"command": "view", "path": "/srv"}, "view /srv"),
        ({"command": "make test", "path": "/srv"}, "make test"),
        ({"path": "/srv/shop/limit.py"}, "/srv/shop/limit.py"),
    ],
)
def test_the_command_of_an_editor_is_told_with_its_file(arguments: dict[str, str], gist: str) -> None:
    assert call_gist(arguments) == gist
