"""Where clients look for their provider: environment variables that hold a base URL.

Each one is pointed at the recorder, with a path that represents its old value or the provider's public address. A
variable that only matters to some users is left alone unless it is set.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from wakelog.errors import InvalidInputError

_OPENAI = "https://api.openai.com/v1"
_ANTHROPIC = "https://api.anthropic.com"
_GOOGLE = "https://generativelanguage.googleapis.com"

ALWAYS = {
    "OPENAI_BASE_URL": _OPENAI,
    "OPENAI_API_BASE": _OPENAI,
    "ANTHROPIC_BASE_URL": _ANTHROPIC,
    "ANTHROPIC_API_BASE": _ANTHROPIC,
    "GOOGLE_GEMINI_BASE_URL": _GOOGLE,
}
"""Variable → the provider's own address."""
IF_SET = (
    *("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE", "GOOGLE_VERTEX_BASE_URL", "GEMINI_API_BASE", "OPENROUTER_API_BASE"),
    *("DEEPSEEK_API_BASE", "GROQ_API_BASE", "GROQ_BASE_URL", "MISTRAL_API_BASE", "XAI_API_BASE", "OLLAMA_API_BASE"),
)


class Endpoints:
    """Maps paths of the recorder to the providers' addresses."""

    def __init__(self, environment: Mapping[str, str], also: Mapping[str, str] | None = None) -> None:
        """`also` are more variables, each with the address to use if it is not set."""
        found = {name: environment.get(name) or own for name, own in ALWAYS.items()}
        found |= {name: environment[name] for name in IF_SET if environment.get(name)}
        for name, own in (also or {}).items():
            found[name] = own or environment.get(name) or found.get(name, "")
        for name, url in found.items():
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise InvalidInputError(
                    f"{name} is not the address of a server: {url!r}",
                    kind="bad-url",
                    hint=f"set it, or pass --env {name}=https://…",
                )
        self.upstreams = {name.lower(): url.rstrip("/") for name, url in found.items()}
        # Nobody else on this machine can guess it, so nobody else can send requests through us or into the record.
        self._secret = secrets.token_urlsafe(12)

    def variables(self, address: str, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment for a command, with all variables pointed at the recorder."""
        env = {name.upper(): f"{address}/{self._secret}/{name}" for name in self.upstreams}
        for name in ("NO_PROXY", "no_proxy"):
            if any(environment.get(proxy) for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")):
                env[name] = ",".join(filter(None, (environment.get(name), "127.0.0.1")))
        # A program that is instrumented itself would record everything twice.
        return {**environment, **env, "WAKELOG_INSTRUMENT": "0"}

    def target(self, path: str) -> str | None:
        """The address that a request is forwarded to. None if it is not meant for us."""
        _, _, rest = path.partition("/")
        secret, _, rest = rest.partition("/")
        name, slash, rest = rest.partition("/")
        upstream = self.upstreams.get(name.partition("?")[0])
        if upstream is None or not secrets.compare_digest(secret.encode(), self._secret.encode()):
            return None
        return upstream + slash + rest
