"""Keys for what is stored, and sealing with them: AES-256-GCM, a key of its own for each place.

A sealed text is: 4 bytes that name the master key, 12 of nonce, the ciphertext, 16 of tag. Whatever
says where it belongs is authenticated with it, so it cannot be put into another place.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass

from topicloom.errors import ConfigurationError, EncryptionError, StorageError
from topicloom.extras import name_install
from topicloom.texts import FilledText

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise ConfigurationError(
        "encryption needs a package that is missing ({package}): {install}",
        package=error.name,
        install=name_install("encryption"),
    ) from error

_KEY_BYTES = 32
_ID_BYTES, _NONCE_BYTES, _TAG_BYTES = 4, 12, 16
SEAL_BYTES = _ID_BYTES + _NONCE_BYTES + _TAG_BYTES
"""Bytes that sealing adds."""
WAY_OUT = (
    "set TOPICLOOM_ENCRYPTION_KEY or TOPICLOOM_ENCRYPTION_KEY_FILE to the key that it was written"
    " with; of several keys, separated by commas, the first one writes and all of them read"
)


def make_encryption_key() -> str:
    """A new master key as text: 32 random bytes in base64."""
    return base64.b64encode(os.urandom(_KEY_BYTES)).decode("ascii")


@dataclass(frozen=True, slots=True)
class _Derived:
    """What one master key gives for one place."""

    cipher: AESGCM
    names: bytes
    """The key of the hashes that stand for names."""


class PlaceKeys:
    """The keys of one place, such as a session: seals, opens, and hides names."""

    def __init__(self, derived: Mapping[bytes, _Derived]) -> None:
        """Keys by the ids of their master keys, the one that writes first."""
        self._derived = derived
        self._writes = next(iter(derived))

    def seal(self, data: bytes, where: bytes) -> bytes:
        """Data sealed for a part of the place."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._writes + nonce + self._derived[self._writes].cipher.encrypt(nonce, data, where)

    def open(self, sealed: bytes, where: bytes) -> bytes:
        """What was sealed for that part.

        Raises:
            EncryptionError: It was sealed with a master key that is not among these.
            StorageError: It is damaged, or was sealed for another part.
        """
        derived = self._derived.get(sealed[:_ID_BYTES])
        if derived is None:
            raise EncryptionError(
                "what is stored is encrypted with another key (its id is {id}): {way}",
                id=sealed[:_ID_BYTES].hex(),
                way=FilledText(WAY_OUT),
            )
        nonce, text = sealed[_ID_BYTES:][:_NONCE_BYTES], sealed[_ID_BYTES + _NONCE_BYTES :]
        try:
            return derived.cipher.decrypt(nonce, text, where)
        except (InvalidTag, ValueError) as error:
            raise StorageError("what is encrypted is not what was written") from error

    def hide(self, name: str, digits: int = 16) -> list[str]:
        """The hex digits that stand for a name, by each master key; that which writes first."""
        text = name.encode("utf-8", "surrogatepass")
        return [hmac.digest(d.names, text, "sha256").hex()[:digits] for d in self._derived.values()]


class EncryptionKeys:
    """Master keys: the first one writes, and all of them read.

    To take a new key into use, put it in front of the old one. `reencrypt` writes everything anew
    with it; then the old one can go.
    """

    def __init__(self, *keys: bytes) -> None:
        """Keys of 32 random bytes each.

        Raises:
            ConfigurationError: There is none, or one has another length.
        """
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            raise ConfigurationError(
                "an encryption key is 32 random bytes in base64, which `topicloom key new` or"
                " `openssl rand -base64 32` prints; got {found}",
                found=", ".join(f"{len(key)} bytes" for key in keys) or "none",
            )
        self._masters = {_derive(key, "key id", _ID_BYTES): key for key in keys}

    @classmethod
    def of(cls, text: str) -> EncryptionKeys:
        """Keys in base64, separated by commas or lines; raises as the class does."""
        try:
            parts = text.replace(",", " ").replace("-", "+").replace("_", "/").split()
            return cls(*(base64.b64decode(part, validate=True) for part in parts))
        except binascii.Error:
            return cls(b"")  # never show what may be most of a key

    def derive(self, place: str) -> PlaceKeys:
        """The keys of a place, by HKDF; nobody can tell those of another from them."""
        return PlaceKeys({master: _split(key, place) for master, key in self._masters.items()})


def _derive(key: bytes, info: str, length: int) -> bytes:
    text = f"topicloom 1\0{info}".encode("utf-8", "surrogatepass")
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=text).derive(key)


def _split(key: bytes, place: str) -> _Derived:
    both = _derive(key, f"place\0{place}", 2 * _KEY_BYTES)
    return _Derived(AESGCM(both[:_KEY_BYTES]), both[_KEY_BYTES:])


def name_part(*names: str) -> bytes:
    """Names as one text that no other names have."""
    return b"".join(
        len(raw).to_bytes(4) + raw for raw in (n.encode("utf-8", "surrogatepass") for n in names)
    )
