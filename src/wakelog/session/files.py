"""Verbs about files on disk: capturing what calls change, comparing, and going back."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wakelog.session.base import Base, S, Where
from wakelog.session.undo import project_of
from wakelog.timeline.selectors import resolve_change

if TYPE_CHECKING:
    # Loaded by the verbs below: most sessions never touch a file.
    from wakelog.files.capture import Capture
    from wakelog.files.file_diff import FileDiff
    from wakelog.files.restore import Restored


class Filing(Base[S]):
    """What calls do to files, opt-in."""

    @property
    def capture(self) -> Capture | None:
        """What watches files around each call with effects; None unless `capture_files` was called."""
        return self.runtime.capture

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self.runtime.capture = capture

    def capture_files(
        self,
        *roots: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        max_file_bytes: int | None = None,
        max_total_bytes: int | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> Capture:
        """From now on, what a call with effects changes below these roots is recorded with contents before and after,
        however it is done, also through a shell. Without roots: the project's folder. What git ignores is left out.

        The first picture is taken at once, and reads every file; see docs/how-to/files-and-rewind.md for what it costs.
        """
        from wakelog.files.capture import Capture, project_folder

        limits = {"max_file_bytes": max_file_bytes, "max_total_bytes": max_total_bytes}
        given = {name: value for name, value in limits.items() if value is not None}
        whole = [folder if folder is not None else project_folder()]
        capture = Capture(roots or whole, folder=folder, exclude=self._own_files(), cache=cache, **given)
        capture.before()
        self.capture = capture
        return capture

    def _own_files(self) -> list[str]:
        """The store's files, which change with every event."""
        from wakelog.files.restore import rescue_home

        path = self.log.engine.abilities.path
        if path is None:
            return []
        stem = path.with_name(path.stem)
        return [str(path), f"{stem}.index.db", str(path.with_name("index.db")), rescue_home(self.log, "")]

    def file_diff(
        self,
        a: Where = None,
        b: Where = None,
        *,
        paths: Iterable[str] = (),
        other: Base[S] | None = None,
    ) -> list[FileDiff]:
        """What changed in files from `a` to `b`, from the contents in the log; by default in the last turn. One place
        alone means what it changed, as for `diff`."""
        from wakelog.files.file_diff import file_diff

        if b is None and other is None:
            a, b = resolve_change(self.log, a)
        target = other or self
        return file_diff(self.log, 0 if a is None else self.seq(a), target.log, target.seq(b), paths=paths)

    def restore_files(
        self,
        at: Where,
        *,
        paths: Iterable[str] = (),
        state: bool = False,
        force: bool = False,
        dry_run: bool = False,
        why: str = "",
    ) -> Restored:
        """Brings files back to what they were at a point. What somebody edited since is kept, and told; with `force` it
        is replaced, and a copy kept. With `state` the view is moved there too, as by `rewind`. `undo` takes it back.

        With `dry_run` nothing is touched: the result holds the plan.
        """
        from wakelog.files.restore import Restored, restore
        from wakelog.files.restore_plan import plan_restore

        to = self.seq(at) or 1
        project = project_of(self.log, self.capture)
        plan = plan_restore(self.log, to, folder=project.folder, roots=project.roots, paths=paths, force=force)
        if dry_run:
            return Restored(plan, (), 0, plan.head)
        return restore(self.log, plan, rewind_to=to if state else None, why=why)
