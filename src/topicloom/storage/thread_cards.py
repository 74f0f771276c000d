"""Cards of a user's threads: what their topics are about, for the user's other threads to find.

    (topicloom, %talks, <user>)     session -> its card

A card has no text: words as hashes, and a vector of each topic. It may be missing or out of date,
and is made anew of the session. Nothing is quoted from it: it only says which session to open.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from langgraph.store.base import BaseStore
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from topicloom.state.persons import Person, sees
from topicloom.storage.store_items import (
    Namespace,
    delete_items,
    items_at,
    items_in,
    label,
    put_items,
)

_WORDS = 600
"""Words of a topic that its card has."""
Hashes = NDArray[np.uint32]


class TopicCard(BaseModel, frozen=True):
    """What a topic is about."""

    id: str
    """Id of the topic; "" for the messages that are in none yet."""
    head: str = ""
    """Head of its messages, by which it is known whether the card is up to date."""
    words: str = ""
    """Hashes of its words [n], 32 bits each, as base64."""
    vector: str = ""
    """Its vector [d], 8 bits a number, as base64."""

    def read_words(self) -> Hashes:
        return np.frombuffer(base64.b64decode(self.words), dtype="<u4")

    def read_vector(self) -> NDArray[np.float32]:
        return np.frombuffer(base64.b64decode(self.vector), dtype=np.int8).astype(np.float32)


class ThreadCard(BaseModel, frozen=True):
    """What a thread is about."""

    session: str
    user: str
    scope: str = ""
    space: str = ""
    """Fingerprint of the encoder that made the vectors."""
    stale: bool = False
    """True if something was purged since: it has to be made anew before it says anything."""
    topics: tuple[TopicCard, ...] = ()


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


def read_cards(store: BaseStore, person: Person, but: str = "") -> list[ThreadCard]:
    """The cards of a user's threads that one in the person's scope may see, `but` its own."""
    found = _read(items_in(store, _find(person.user)))
    return [
        card
        for card in found
        if card.user == person.user and card.session != but and sees(person.scope, card.scope)
    ]


def read_card(store: BaseStore, person: Person, session: str) -> ThreadCard | None:
    """The card of one session; None if there is none."""
    found = _read(items_at(store, _find(person.user), [label(session)]))
    return next((c for c in found if c.session == session and c.user == person.user), None)


def write_card(store: BaseStore, card: ThreadCard) -> None:
    put_items(store, _find(card.user), {label(card.session): card.model_dump(mode="json")})


def forget_card(store: BaseStore, person: Person, session: str) -> None:
    """Take all that a card says out of it, if there is one."""
    if read_card(store, person, session) is not None:
        empty = ThreadCard(session=session, user=person.user, scope=person.scope, stale=True)
        write_card(store, empty)


def delete_card(store: BaseStore, person: Person, session: str) -> None:
    delete_items(store, _find(person.user), [label(session)])


def delete_cards(store: BaseStore, user: str, but: Sequence[str] = ()) -> None:
    """Delete the cards of a user's threads, `but` some."""
    kept = set(map(label, but))
    items = list(items_in(store, _find(user)))
    delete_items(store, _find(user), [i.key for i in items if i.key not in kept])


def _find(user: str) -> Namespace:
    return ("topicloom", "%talks", label(user))


def _read(items: Iterable[object]) -> list[ThreadCard]:
    cards = list[ThreadCard]()
    for item in items:
        try:
            cards.append(ThreadCard.model_validate(getattr(item, "value", None)))
        except ValidationError:  # damaged: as if there were none
            continue
    return cards
