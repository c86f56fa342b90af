"""What people want, for all sessions: kept, found in what they said, removed."""

from __future__ import annotations

import msgspec

from wakelog.engines.remote.wire import Acknowledged, Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import NotEmpty, Query
from wakelog.store.preferences import PossiblePreference, Preference


class PreferencesQuery(Query, frozen=True):
    project: str | None = None
    """The main work tree of a repository: those that hold there."""
    person: str | None = None


class PossibleQuery(Query, frozen=True):
    project: str | None = None


class AddPreference(Question, frozen=True):
    """One sentence, and for whom it holds; empty: everywhere, everybody."""

    text: NotEmpty
    project: str = ""
    person: str = ""
    why: str = ""


class AcceptPreference(Question, frozen=True):
    """What was derived in a session, by its id there. Without a project it holds in the session's."""

    session: NotEmpty
    item: NotEmpty
    project: str | None = None
    person: str = ""
    why: str = ""


class PreferenceList(msgspec.Struct, frozen=True):
    preferences: tuple[Preference, ...]


class PossibleList(msgspec.Struct, frozen=True):
    possible: tuple[PossiblePreference, ...]


@route("GET", "/preferences")
def preferences(call: VerbRequest, query: PreferencesQuery) -> PreferenceList:
    """Lists what people want, each with its source."""
    return PreferenceList(call.space.store.preferences.all(**call.given(query)))


@route("POST", "/preferences", scope="write")
def add_preference(call: VerbRequest, body: AddPreference) -> Preference:
    """Keeps a preference; briefs show it from now on."""
    return call.space.store.preferences.add(**call.given(body))


@route("GET", "/preferences/derived")
def possible_preferences(call: VerbRequest, query: PossibleQuery) -> PossibleList:
    """Lists what users said in the newest sessions that may hold beyond them."""
    return PossibleList(call.space.store.preferences.derived(**call.given(query)))


@route("POST", "/preferences/accept", scope="write")
def accept_preference(call: VerbRequest, body: AcceptPreference) -> Preference:
    """Keeps what was derived in a session as a preference, by its place."""
    store = call.space.store
    session = store.resume(body.session)
    return store.preferences.accept(session, body.item, project=body.project, person=body.person, why=body.why)


@route("DELETE", "/preferences/{id}", scope="write")
def remove_preference(call: VerbRequest) -> Acknowledged:
    """Removes a preference."""
    call.space.store.preferences.remove(call.path["id"])
    return Acknowledged()
