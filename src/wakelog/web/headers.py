"""The security headers of the page's files.

The policy allows the page only to load its own files and to talk to its own server: no inline script or style, no
frame, no plugin, no other host. With `require-trusted-types-for`, the browser refuses text as markup, except through
the one policy of the page's library, which sees only the page's own templates.
"""

from __future__ import annotations

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

FOREVER = "public, max-age=31536000, immutable"
"""For files whose name changes with their content."""
NEVER = "no-store"
