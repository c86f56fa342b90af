"""Warnings are errors, but not those of foreign code that Python happens to compile during a run."""

import pytest

ESCAPE = r'"\/"'


def test_a_library_is_compiled_as_quietly_as_it_is_loaded() -> None:
    """Where compiled files are not kept, every run compiles the libraries it imports."""
    compile(ESCAPE, "/anywhere/lib/python3/site-packages/library/types.py", "exec")
    with pytest.raises(SyntaxError):
        compile(ESCAPE, __file__, "exec")
