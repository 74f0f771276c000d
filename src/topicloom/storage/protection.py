"""Where encryption is put around a place, if there are keys. Without keys, no package is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from topicloom.errors import ConfigurationError, EncryptionError
from topicloom.storage.backend import Batch, Rows
from topicloom.storage.base import Storage

if TYPE_CHECKING:
    from topicloom.storage.encryption import EncryptionKeys, PlaceKeys

_CIPHER = "topicloom"


def protect_storage(storage: Storage, keys: EncryptionKeys | None) -> Storage:
    """A storage that encrypts what this one keeps; itself without keys, or if it does already."""
    if keys is None:
        return storage
    from topicloom.storage.encrypted import EncryptedStorage

    return storage if isinstance(storage, EncryptedStorage) else EncryptedStorage(storage, keys)


def protect_store(store: BaseStore, keys: EncryptionKeys | None) -> BaseStore:
    """A store that encrypts the items of this one; itself without keys."""
    if keys is None:
        return store
    from topicloom.storage.encrypted_store import EncryptedStore

    return EncryptedStore(store, keys)


def protect_vectors(rows: Rows[Batch], keys: EncryptionKeys | None, place: str) -> Rows[Batch]:
    """Vectors of a place of their own that are encrypted; themselves without keys."""
    if keys is None:
        return rows
    from topicloom.storage.encrypted import EncryptedBatches

    return EncryptedBatches(rows, keys.derive(place))


def find_inner(place: Any) -> Any:
    """The storage or store that an encrypted one is around; itself if it is none."""
    return getattr(place, "inner", place)


def make_serializer(keys: EncryptionKeys | None) -> SerializerProtocol:
    """The serializer of a checkpointer: `SqliteSaver(connection, serde=make_serializer(keys))`.

    It reads checkpoints that are not encrypted yet. Without keys it raises `EncryptionError` for
    one that is.
    """
    if keys is None:
        return _KeylessSerializer()
    return EncryptedSerializer(_Cipher(keys.derive("checkpoints")), JsonPlusSerializer())


class _Cipher:
    """AES-GCM for LangGraph's serializer."""

    def __init__(self, keys: PlaceKeys) -> None:
        self._keys = keys

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return _CIPHER, self._keys.seal(plaintext, b"")

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if ciphername != _CIPHER:
            raise EncryptionError(
                "a checkpoint is encrypted by {cipher!r}, of another serializer: give the"
                " checkpointer that one",
                cipher=ciphername,
            )
        return self._keys.open(ciphertext, b"")


class _KeylessSerializer(JsonPlusSerializer):
    """LangGraph's own, which says what to do about encrypted checkpoints."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if "+" in data[0]:
            raise EncryptionError(
                "the checkpoints are encrypted, and no key is set: set TOPICLOOM_ENCRYPTION_KEY or"
                " TOPICLOOM_ENCRYPTION_KEY_FILE"
            )
        return super().loads_typed(data)


def check_protected(checkpointer: object, store: object) -> None:
    """Raise `ConfigurationError` for a place on disk that would keep in the clear what is said."""
    kept = isinstance(checkpointer, BaseCheckpointSaver) and not isinstance(
        checkpointer, InMemorySaver
    )
    if kept and not isinstance(getattr(checkpointer, "serde", None), EncryptedSerializer):
        raise ConfigurationError(
            "an encryption key is set, and {saver} would not encrypt: give it"
            " serde=make_serializer(keys), or take local_checkpointer()",
            saver=type(checkpointer).__name__,
        )
    kept = isinstance(store, BaseStore) and not isinstance(store, InMemoryStore)
    if kept and find_inner(store) is store:
        raise ConfigurationError(
            "an encryption key is set, and {store} would not encrypt: give the graph"
            " store=EncryptedStore(store, keys)",
            store=type(store).__name__,
        )
