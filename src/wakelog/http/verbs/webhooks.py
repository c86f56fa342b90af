"""Webhooks that run beside the server: their state, and skipping a message that the receiver refuses."""

from __future__ import annotations

import msgspec

from wakelog.http.routes import VerbRequest, route
from wakelog.webhooks.hook_states import HookState, hook_states, hooks_folder, skip_message
from wakelog.webhooks.positions import RefusedMessage


class WebhookList(msgspec.Struct, frozen=True):
    hooks: list[HookState]


class WebhookSkip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str
    """The name or id of the blocked session."""


@route("GET", "/webhooks")
def webhooks(call: VerbRequest) -> WebhookList:
    """Lists the store's webhooks that the server's user set up on its machine: what was sent, what is wrong, and which
    messages are refused. Only the host of an address and the source of a secret are shown."""
    return WebhookList(hook_states(hooks_folder(call.space.store)))


@route("POST", "/webhooks/{name}/skip", scope="admin")
def skip_webhook(call: VerbRequest, body: WebhookSkip) -> RefusedMessage:
    """Skips the message that a receiver refuses and that blocks a session. The next one is sent."""
    return skip_message(call.space.store, hooks_folder(call.space.store), call.path["name"], body.session)
