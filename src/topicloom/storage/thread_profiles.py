"""Profiles of a user's threads: what their topics are about, for the user's other threads to find.

    (topicloom, %talks, <user>)     session -> its profile

A profile has no text: words as hashes, and a vector of each topic. It may be missing or out of
date, and is made anew from the session. Nothing is quoted from it: it
only says which session to open.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

import numpy as np
from langgraph.store.base import BaseStore
from numpy.typing import NDArray
from pydantic import BaseModel

from topicloom.state.persons import Person, sees
from topicloom.storage.store_items import (
    PREFIX,
    Namespace,
    delete_items,
    items_at,
    items_in,
    label,
    put_items,
    read_item,
)

_WORDS = 600
"""Words of a topic that its profile has."""
Hashes = NDArray[np.uint32]


class TopicProfile(BaseModel, frozen=True):
    """What a topic is about."""

    id: str
    """Id of the topic; "" for the messages that are in none yet."""
    head: str = ""
    """Head of its messages, by which it is known whether the profile is up to date."""
    words: str = ""
    """Hashes of its words [n], 32 bits each, as base64."""
    vector: str = ""
    """Its vector [d], 8 bits a number, as base64."""

    def read_words(self) -> Hashes:
        return np.frombuffer(base64.b64decode(self.words), dtype="<u4")

    def read_vector(self) -> NDArray[np.float32]:
        return np.frombuffer(base64.b64decode(self.vector), dtype=np.int8).astype(np.float32)


class ThreadProfile(BaseModel, frozen=True):
    """What a thread is about."""

    session: str
    user: str
    scope: str = ""
    space: str = ""
    """Fingerprint of the encoder that made the vectors."""
    stale: bool = False
    """True if something was purged since: it has to be made anew before it says anything."""
    topics: tuple[TopicProfile, ...] = ()


def hash_words(words: Iterable[str]) -> Hashes:
    """Hashes [n] of words, each once, of those that come last if there are too many."""
    last = list(dict.fromkeys(words))[-_WORDS:]
    hashed = (hashlib.blake2b(w.encode("utf-8", "replace"), digest_size=4).digest() for w in last)
    return np.frombuffer(b"".join(hashed), dtype="<u4")


def pack_words(hashes: Hashes) -> str:
    return base64.b64encode(hashes.astype("<u4").tobytes()).decode("ascii")


def pack_vector(vector: NDArray[np.float32]) -> str:
    """A unit vector [d] with 8 bits a number."""
    return base64.b64encode(np.rint(vector * 127).astype(np.int8).tobytes()).decode("ascii")


def read_profiles(store: BaseStore, person: Person, but: str = "") -> list[ThreadProfile]:
    """The profiles of a user's threads that one in the person's scope may see, `but` its own."""
    found = (read_item(ThreadProfile, item) for item in items_in(store, _find(person.user)))
    own = [profile for profile in found if profile and profile.user == person.user]
    return [p for p in own if p.session != but and sees(person.scope, p.scope)]


def read_profile(store: BaseStore, person: Person, session: str) -> ThreadProfile | None:
    items = items_at(store, _find(person.user), [label(session)])
    found = (read_item(ThreadProfile, item) for item in items)
    return next((c for c in found if c and (c.session, c.user) == (session, person.user)), None)


def write_profile(store: BaseStore, profile: ThreadProfile) -> None:
    put_items(store, _find(profile.user), {label(profile.session): profile.model_dump(mode="json")})


def forget_profile(store: BaseStore, person: Person, session: str) -> None:
    """Take all that a profile says out of it, if there is one."""
    if read_profile(store, person, session) is not None:
        empty = ThreadProfile(session=session, user=person.user, scope=person.scope, stale=True)
        write_profile(store, empty)


def delete_profile(store: BaseStore, person: Person, session: str) -> None:
    delete_items(store, _find(person.user), [label(session)])


def delete_profiles(store: BaseStore, user: str) -> None:
    delete_items(store, _find(user), [item.key for item in items_in(store, _find(user))])


def _find(user: str) -> Namespace:
    return (PREFIX, "%talks", label(user))
