"""The web page: its built files, and the rules under which a browser may have them.

The page is a program of its own (`ui/`), built into `static/` here by the package's build. It talks to the public HTTP
API only. This room knows nothing of stores or sessions: it has files, headers and addresses.

    assets.py      the built files, by their addresses
    headers.py     what a browser is told with each of them
    addresses.py   which paths are pages, and which route gives the same as JSON
    entry.py       from a key in an address to a cookie
"""
