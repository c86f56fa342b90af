"""The HTTP server: every verb of the library as a route, for programs in any language.

A request is parsed, one verb is called, and its answer rendered. All routes are in one table (routes.py): routing,
scope checks, decoding, the OpenAPI document, the reference page and the tests of isolation are made from it, so none of
them can forget a route.

    app.py            from a request to an answer        routes.py     what a route is
    protocol.py       limits before any key              verbs/        the routes, a file for each group
    keys.py           API keys                           shapes.py     what routes take and give
    namespaces.py     namespace → store                  openapi.py    the document
    notifications.py  news, for those who wait           server.py     starting and stopping
"""
