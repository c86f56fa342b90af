"""A process that opens stores on request: it reads one URL per line, and prints `ok` or the error."""

import sys

import wakelog


def main(name: str) -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            with wakelog.open(line.strip()) as store:
                store.session(name).fact("opened by", name)
                store.session("shared").fact(name, 1)
            print("ok", flush=True)
        except Exception as exc:
            print(repr(exc), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
