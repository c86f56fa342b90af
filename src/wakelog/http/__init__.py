"""The HTTP server: every verb of the library as a route, for programs in any language.

A request is parsed, one verb is called, and its answer is encoded. All routes are in one table (routes.py). Routing,
scope checks, decoding, the OpenAPI document, the reference page and the tests of isolation are made from it, so none of
them can miss a route.

    app.py            from a request to an answer        routes.py     what a route is
    protocol.py       limits before any key              verbs/        the routes, a file for each group
    keys.py           API keys                           shapes.py     bodies and answers of routes
    namespaces.py     namespace → store                  openapi.py    the OpenAPI document
    notifications.py  news for tails and waits           server.py     starting and stopping
    page.py           the web page's files and cookies
"""
