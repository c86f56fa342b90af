"""The routes, in the order of the reference page. Importing this fills the table."""

from wakelog.http.verbs import (  # noqa: F401, I001 - the order is the page's
    sessions,
    history,
    records,
    lifecycle,
    attempts,
    provenance,
    context,
    oversight,
    maintenance,
    telemetry,
    webhooks,
    index,
    plans,
    preferences,
    rollups,
    tail,
    server,
    engine,
)  # fmt: skip
