"""The web page: its built files, their headers, and how a browser signs in.

The page is a separate program (`ui/`); the package's build puts it into `static/`. It uses only the public HTTP API.
This room knows nothing of stores or sessions: it has files, headers and addresses.

    assets.py      the built files, by path, and their security headers
    addresses.py   which paths are pages, and which route returns the same as JSON
    entry.py       from a key in an address to a cookie
"""
