"""A process that opens stores when it is told to, and says how that went: a URL a line in, `ok` or the error out."""

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
