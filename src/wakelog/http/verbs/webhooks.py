"""Webhooks that run beside the server: how they are doing, and how a message is given up that is never taken."""

from __future__ import annotations

import msgspec

from wakelog.http.routes import VerbRequest, route
from wakelog.webhooks.hook_states import HookState, hook_states, hooks_folder, skip_message
from wakelog.webhooks.positions import RefusedMessage


class WebhookList(msgspec.Struct, frozen=True):
    hooks: list[HookState]


class WebhookSkip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str
    """The name or id of the session that is held up."""


@route("GET", "/webhooks")
def webhooks(call: VerbRequest) -> WebhookList:
    """Lists the webhooks of the store that were set up on the server's machine, by its user: what was sent, what is
    wrong, and which messages are refused. Of an address only the host is told, of a secret only its source."""
    return WebhookList(hook_states(hooks_folder(call.space.store)))


@route("POST", "/webhooks/{name}/skip", scope="admin")
def skip_webhook(call: VerbRequest, body: WebhookSkip) -> RefusedMessage:
    """Gives up the message that a receiver refuses and that holds up a session. What follows is sent next."""
    return skip_message(call.space.store, hooks_folder(call.space.store), call.path["name"], body.session)
