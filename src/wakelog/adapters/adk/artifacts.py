"""ADK's artifact service: the files of a session, with all their versions.

They are the artefacts of a session named `adk-artifacts/<app>/<user>/<session>`, or `…/<user>` for files that all
sessions of a user share (their names start with `user:`). A version is one event, with its content as a payload.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.platform import time as adk_time
from google.genai import types

from wakelog.adapters.adk.event_drafts import FORMAT, LABELS, micros
from wakelog.adapters.adk.state_values import stored_value
from wakelog.adapters.compound_names import compound_name
from wakelog.adapters.exact_values import from_stored
from wakelog.adapters.held_logs import LogsAdapter
from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.payloads import Payload
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session

ARTIFACTS = "adk-artifacts"
_SAVED, _DELETED = "x.adk.artifact", "x.adk.artifact_deleted"
_USER = "user:"
_REFERENCES_MAX = 5
"""How many references are followed from one artifact to another."""

Scope = tuple[str, ...]


class SavedVersion(msgspec.Struct, frozen=True):
    """One version of an artifact: its metadata, and the entry that holds its content."""

    about: dict[str, Any]
    entry: Entry


class WakelogArtifactService(LogsAdapter, BaseArtifactService):  # type: ignore[misc]  # Any if it is not installed
    """Stores ADK's artifacts as sessions of a wakelog store."""

    framework = FORMAT

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        part = types.Part.model_validate(artifact) if isinstance(artifact, dict) else artifact
        scope = _scope(app_name, user_id, filename, session_id)
        return await in_thread(self._save, scope, filename, part, custom_metadata or {}, session_id)

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        return await in_thread(self._load, (app_name, user_id, session_id), filename, version)

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        _check_ids(app_name, user_id, session_id)
        scopes: list[Scope] = [(app_name, user_id)]
        if session_id is not None:
            scopes.append((app_name, user_id, session_id))
        return await in_thread(lambda: sorted(name for scope in scopes for name in self._versions(scope)))

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        await in_thread(self._delete, _scope(app_name, user_id, filename, session_id), filename)

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        scope = _scope(app_name, user_id, filename, session_id)
        return [saved.about["version"] for saved in await in_thread(self._saved, scope, filename)]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        scope = _scope(app_name, user_id, filename, session_id)
        return [_about(saved) for saved in await in_thread(self._saved, scope, filename)]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        scope = _scope(app_name, user_id, filename, session_id)
        saved = _chosen(await in_thread(self._saved, scope, filename), version)
        return _about(saved) if saved is not None else None

    def _save(
        self, scope: Scope, filename: str, part: types.Part, metadata: dict[str, Any], session_id: str | None
    ) -> int:
        mime = _mime_of(part, (scope[0], scope[1], session_id))
        name = compound_name(ARTIFACTS, *scope)
        content, shell = _split_content(part)
        held = self._logs.open(name, dict(zip(LABELS, scope, strict=False)), agent=scope[0])
        now = adk_time.get_time()

        def attempt() -> int:
            seq = held.log.look()[0]
            version = len(self._versions(scope, upto=seq).get(filename, ()))
            about = {
                "filename": filename,
                "version": version,
                "canonical_uri": _uri(scope, filename, version),
                "custom_metadata": metadata,
                "create_time": now,
                "mime_type": mime,
                "part": shell,
            }
            uri = f"{name}?version={version}"
            named = ev.ArtefactRecorded(
                name=filename, uri=uri, media=mime or "", content=content, occurred_at=micros(now)
            )
            held.log.append(named, ev.Foreign(foreign_kind=_SAVED, data=stored_value(about, filename)), expect=seq)
            return version

        return retry_on_moved_head(held.log.id, f"to save {filename}", attempt)

    def _load(self, ids: tuple[str, str, str | None], filename: str, version: int | None) -> types.Part | None:
        for _ in range(_REFERENCES_MAX + 1):
            scope = _scope(ids[0], ids[1], filename, ids[2])
            saved = _chosen(self._saved(scope, filename), version)
            if saved is None:
                return None
            part = self._part(scope, saved)
            if part is None or not artifact_util.is_artifact_ref(part):
                return None if part is None or _is_tombstone(part) else part
            target = _target(part, ids)
            ids, filename, version = (
                (target.app_name, target.user_id, target.session_id),
                target.filename,
                target.version,
            )
        raise InputValidationError(f"Exceeded maximum recursion depth resolving artifact reference: {filename}")

    def _part(self, scope: Scope, saved: SavedVersion) -> types.Part | None:
        held = self._logs.find(compound_name(ARTIFACTS, *scope))
        if held is None:
            return None
        part = saved.about["part"]
        try:
            content = held.log.value(saved.entry, saved.entry.body.get("content"))
        except NotFoundError:  # erased
            return None
        if "text" in part:
            part = part | {"text": content.decode() if isinstance(content, bytes) else content or ""}
        elif isinstance(part.get("inline_data"), dict):
            data = base64.urlsafe_b64encode(content if isinstance(content, bytes) else b"").decode()
            part = part | {"inline_data": part["inline_data"] | {"data": data}}
        return types.Part.model_validate(part)

    def _delete(self, scope: Scope, filename: str) -> None:
        """Erases the content of all versions, and frees the name."""
        name = compound_name(ARTIFACTS, *scope)
        saved = self._saved(scope, filename)
        held = self._logs.find(name)
        if not saved or held is None:
            return
        held.log.append(ev.Foreign(foreign_kind=_DELETED, data={"filename": filename}))
        self.store.erase(
            Session(held.log, name=name), [version.entry.seq for version in saved], why="deleted through ADK"
        )

    def _saved(self, scope: Scope, filename: str) -> list[SavedVersion]:
        return self._versions(scope).get(filename, [])

    def _versions(self, scope: Scope, upto: int | None = None) -> dict[str, list[SavedVersion]]:
        held = self._logs.find(compound_name(ARTIFACTS, *scope))
        return read_versions(held.log, upto) if held is not None else {}


def read_versions(log: Log, upto: int | None = None) -> dict[str, list[SavedVersion]]:
    """The artifacts of a session by name, each with its versions, oldest first."""
    found: dict[str, list[SavedVersion]] = {}
    named: Entry | None = None
    for entry in log.entries(upto=upto):
        if entry.kind == "artefact.recorded":
            named = entry
        elif entry.kind == _SAVED and named is not None and "filename" in entry.body:
            found.setdefault(entry.body["filename"], []).append(SavedVersion(from_stored(entry.body), named))
        elif entry.kind == _DELETED:
            found.pop(entry.body.get("filename", ""), None)
    return found


def _scope(app: str, user: str, filename: str, session: str | None) -> Scope:
    _check_ids(app, user, None if filename.startswith(_USER) else session)
    if filename.startswith(_USER):
        return app, user
    if session is None:
        raise InputValidationError("Session ID must be provided for session-scoped artifacts.")
    return app, user, session


def _check_ids(app: str, user: str, session: str | None) -> None:
    """Refuses the ids that ADK's file-based service refuses because they would change the path, so that a program can
    switch its service."""
    check = getattr(artifact_util, "validate_path_segment", None)
    if check is not None:
        for id, what in ((app, "app_name"), (user, "user_id"), (session, "session_id")):
            if id is not None:
                check(id, what)


def _chosen(saved: list[SavedVersion], version: int | None) -> SavedVersion | None:
    if not saved or (version is not None and not 0 <= version < len(saved)):
        return None
    return saved[-1 if version is None else version]


def _about(saved: SavedVersion) -> ArtifactVersion:
    return ArtifactVersion(**{key: value for key, value in saved.about.items() if key not in ("filename", "part")})


def _split_content(part: types.Part) -> tuple[Value, dict[str, Any]]:
    """The content of a part, and the part without it."""
    shell = part.model_dump(mode="json", exclude_none=True)
    if part.inline_data is not None:
        shell["inline_data"].pop("data", None)
        return Payload(part.inline_data.data or b""), shell
    if part.text is not None:
        shell["text"] = ""
        return part.text, shell
    return None, shell


def _mime_of(part: types.Part, ids: tuple[str, str, str | None]) -> str | None:
    if part.inline_data is not None:
        return part.inline_data.mime_type
    if part.text is not None:
        return "text/plain"
    if part.file_data is None:
        raise InputValidationError("Not supported artifact type.")
    if not artifact_util.is_artifact_ref(part):
        return part.file_data.mime_type
    _target(part, ids)
    return None


def _target(part: types.Part, ids: tuple[str, str, str | None]) -> Any:
    """The target of a reference: a file of the same session, or one that all sessions of the user share."""
    uri = part.file_data.file_uri if part.file_data is not None else ""
    parsed = artifact_util.parse_artifact_uri(uri or "")
    if not parsed:
        raise InputValidationError(f"Invalid artifact reference URI: {uri}")
    if (parsed.app_name, parsed.user_id) != ids[:2]:
        raise InputValidationError("Artifact references must stay within the same app and user scope.")
    if parsed.session_id is not None and parsed.session_id != ids[2]:
        raise InputValidationError("Session-scoped artifact references must stay within the same session scope.")
    return parsed


def _is_tombstone(part: types.Part) -> bool:
    """True for what ADK's rewind saves if an artifact did not exist before."""
    if part == types.Part():
        return True
    check = getattr(artifact_util, "_is_rewind_tombstone", None)
    return bool(check is not None and check(part))


def _uri(scope: Scope, filename: str, version: int) -> str:
    app, user, *session = scope
    place = f"sessions/{session[0]}/" if session else ""
    return f"wakelog://apps/{app}/users/{user}/{place}artifacts/{filename}/versions/{version}"
