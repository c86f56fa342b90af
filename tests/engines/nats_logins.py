"""What a server that is locked needs: a certificate of its own, or an operator with an account and a user."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import json
import os
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for loopback that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pem, private


def make_account(folder: Path) -> tuple[str, Path]:
    """The settings of a server that lets only users of one account in, and the credentials file of such a user."""
    operator, system, account, user = (_pair(prefix) for prefix in (b"O", b"A", b"A", b"U"))
    limits = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "conn": -1, "subs": -1}
    limits |= {"data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "leaf": -1}
    of_operator = _token(operator, _name(operator), {"type": "operator", "version": 2})
    accounts = {
        _name(each): _token(operator, _name(each), {"type": "account", "version": 2, "limits": more})
        for each, more in ((account, limits), (system, {}))
    }
    of_user = _token(account, _name(user), {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1})
    credentials = folder / "user.creds"
    credentials.write_text(
        f"-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    known = ", ".join(f"{name}: {token}" for name, token in accounts.items())
    trusted = f"operator: {of_operator}\nsystem_account: {_name(system)}"
    return f"{trusted}\nresolver: MEMORY\nresolver_preload: {{ {known} }}", credentials


def _pair(prefix: bytes) -> Any:
    kinds = {b"O": nkeys.PREFIX_BYTE_OPERATOR, b"A": nkeys.PREFIX_BYTE_ACCOUNT, b"U": nkeys.PREFIX_BYTE_USER}
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), kinds[prefix]))


def _name(pair: Any) -> str:
    return str(pair.public_key.decode())


def _token(issuer: Any, subject: str, what: dict[str, Any]) -> str:
    """A statement about a subject, signed by its issuer."""
    claims: dict[str, Any] = {"iat": 1_700_000_000, "iss": _name(issuer), "name": "t", "sub": subject, "nats": what}
    claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
    text = ".".join(_encode(json.dumps(each).encode()) for each in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims))
    return f"{text}.{_encode(issuer.sign(text.encode()))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
