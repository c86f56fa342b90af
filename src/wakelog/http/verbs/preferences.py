"""Preferences of people, for all sessions: add, derive from what they said, remove."""

from __future__ import annotations

import msgspec

from wakelog.engines.remote.wire import Acknowledged, Question
from wakelog.http.routes import VerbRequest, route
from wakelog.http.shapes import NotEmpty, Query
from wakelog.store.preferences import PossiblePreference, Preference


class PreferencesQuery(Query, frozen=True):
    project: str | None = None
    """The main work tree of a repository: only preferences that apply there."""
    person: str | None = None


class PossibleQuery(Query, frozen=True):
    project: str | None = None


class AddPreference(Question, frozen=True):
    """One sentence, and where it applies; empty means everywhere and to everybody."""

    text: NotEmpty
    project: str = ""
    person: str = ""
    why: str = ""


class AcceptPreference(Question, frozen=True):
    """An item derived in a session, by its id. By default it applies to the session's project."""

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
    """Lists preferences, each with its source."""
    return PreferenceList(call.space.store.preferences.all(**call.kwargs(query)))


@route("POST", "/preferences", scope="write")
def add_preference(call: VerbRequest, body: AddPreference) -> Preference:
    """Adds a preference. Briefs show it from now on."""
    return call.space.store.preferences.add(**call.kwargs(body))


@route("GET", "/preferences/derived")
def possible_preferences(call: VerbRequest, query: PossibleQuery) -> PossibleList:
    """Lists what users said in the newest sessions that may apply to other sessions too."""
    return PossibleList(call.space.store.preferences.derived(**call.kwargs(query)))


@route("POST", "/preferences/accept", scope="write")
def accept_preference(call: VerbRequest, body: AcceptPreference) -> Preference:
    """Adds a preference that was derived in a session."""
    store = call.space.store
    session = store.resume(body.session)
    return store.preferences.accept(session, body.item, project=body.project, person=body.person, why=body.why)


@route("DELETE", "/preferences/{id}", scope="write")
def remove_preference(call: VerbRequest) -> Acknowledged:
    """Removes a preference."""
    call.space.store.preferences.remove(call.path["id"])
    return Acknowledged()
