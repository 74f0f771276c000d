"""An archived chain in a LangGraph store: packed blocks and a card, in a namespace of their own.

A block is an item `{"block": <base64 of an xz stream of lines>}` whose key is a hash of it; the
card is the item `card`, `{"month": ..., "blocks": [<keys>], "card": <JSON text>}`. Blocks are
written first, then the card that lists them, then blocks that it does not list are deleted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, Item

from topicloom.errors import StorageError
from topicloom.storage.cards import ArchiveCard, card_text, read_card
from topicloom.storage.chain import RawEntry, join_line
from topicloom.storage.packing import entries_in, lines_in, pack, unpack
from topicloom.storage.store_items import (
    Namespace,
    delete_items,
    items_at,
    items_in,
    put_items,
)
from topicloom.storage.tombstones import is_sound

_CARD = "card"


class StoreArchive:
    """The archive of one chain. Not safe for several threads."""

    def __init__(self, store: BaseStore, namespace: Namespace, reports: list[str]) -> None:
        """An archive, unknown until the first `load`.

        Args:
            store: The store.
            namespace: Where nothing else is.
            reports: Where to say what was found damaged.
        """
        self.prevs: Mapping[str, str | None] = {}
        """The ref before each ref that it holds."""
        self.lost: Mapping[str, str | None] = {}
        """The ref before each ref that it is known to have held, and that is not there."""
        self.loaded = False
        """Whether it was looked at."""
        self.damage: str | None = None
        """What is wrong with it, and the way out."""
        self.rotten = False
        """Whether there is something that nobody can say what it holds."""
        self._store = store
        self._namespace = namespace
        self._reports = reports
        self._blocks: Mapping[str, str] = {}
        self._absent: list[str] = []
        self._items = 0

    @property
    def exists(self) -> bool:
        """Whether there was anything when it was looked at last."""
        return self._items > 0

    def load(self) -> None:
        """Index what is there now."""
        self.loaded = True
        items = {item.key: item for item in items_in(self._store, self._namespace)}
        self._items = len(items)
        card, listed = _card_in(items.pop(_CARD, None))
        prevs: dict[str, str | None] = {}
        blocks: dict[str, str] = {}
        faults: list[str] = []
        # What the card does not list is left of a crash, and may be older.
        for key in sorted(items, key=lambda key: key not in listed):
            text = _text_in(items[key])
            if text is None:
                faults.append(f"cannot be unpacked at its block {key}")
            for raw in entries_in(lines_in(text or b"")):
                prevs.setdefault(raw.ref, raw.prev)
                blocks.setdefault(raw.ref, key)
        self.prevs, self._blocks = prevs, blocks
        self.lost = {ref: prev for ref, prev in card.refs.items() if ref not in prevs}
        self._absent = [key for key in listed if key not in items]
        if self.lost and not faults and not self._absent:
            faults = ["was changed by hand"]
        self.rotten = bool(faults)
        self._report([*faults, *(f"has lost its block {key}" for key in self._absent)])

    def card(self) -> ArchiveCard | None:
        """The card; None when nothing is archived."""
        for item in items_at(self._store, self._namespace, [_CARD]):
            return _card_in(item)[0]
        return None

    def read(self, refs: Sequence[str]) -> Iterator[RawEntry]:
        """Those of some entries that can be read, unchecked."""
        keys = dict.fromkeys(self._blocks[ref] for ref in refs if ref in self._blocks)
        wanted = set(refs)
        for item in items_at(self._store, self._namespace, list(keys)):
            for raw in entries_in(lines_in(_text_in(item) or b"")):
                if raw.ref in wanted and self._blocks.get(raw.ref) == item.key:
                    wanted.discard(raw.ref)
                    yield raw

    def entries(self) -> list[RawEntry]:
        """All entries but lost ones.

        Raises:
            StorageError: Some cannot be unpacked, or are not what was written.
        """
        self.load()
        if self.rotten:
            raise StorageError(self.damage)
        entries = list(self.read(list(self.prevs)))
        for raw in entries:
            if not is_sound(raw):
                raise StorageError(
                    f"entry {raw.ref} in the archive {self._namespace} is not what was written."
                    " Restore its items from a backup"
                )
        return entries

    def write(self, entries: Sequence[RawEntry], month: str, summary: Mapping[str, Any]) -> None:
        """Make the archive hold just these entries.

        Raises:
            InputError: The summary is not JSON.
            StorageError: They could not be read back; what was there before still is.
        """
        self._write(entries, {"month": month, "card": card_text(summary, entries).decode()}, [])

    def rewrite(self, entries: Sequence[RawEntry], summary: Mapping[str, Any]) -> None:
        """Put other bodies in, and another summary; refs stay, and what is not there stays away.

        Raises:
            InputError: The summary is not JSON.
            StorageError: They could not be read back; what was there before still is.
        """
        if self.exists:
            card = self.card() or ArchiveCard("", {})
            listed = [RawEntry(ref, prev, b"") for ref, prev in card.refs.items()]
            text = card_text(summary, listed).decode()
            self._write(entries, {"month": card.month, "card": text}, self._absent)

    def _write(
        self, entries: Sequence[RawEntry], card: Mapping[str, str], absent: Sequence[str]
    ) -> None:
        blocks = {_key_of(block): block for block in pack(map(join_line, entries))}
        values = {
            key: {"block": base64.b64encode(block).decode("ascii")} for key, block in blocks.items()
        }
        put_items(self._store, self._namespace, values)
        listed = {**card, "blocks": [*blocks, *absent]}
        put_items(self._store, self._namespace, {_CARD: listed})
        self.load()
        back = {raw.ref: raw for raw in self.read([raw.ref for raw in entries])}
        if list(map(back.get, (raw.ref for raw in entries))) != list(entries):
            raise StorageError(
                f"the archive {self._namespace} could not be read back after it was written; what"
                " was there before still is"
            )
        keys = [item.key for item in items_in(self._store, self._namespace)]
        old = [key for key in keys if key != _CARD and key not in blocks]
        delete_items(self._store, self._namespace, old)

    def _report(self, faults: Sequence[str]) -> None:
        damage = _damage(self._namespace, faults[0], len(self.lost)) if faults else None
        if damage is not None and damage not in self._reports:
            self._reports.append(damage)
        self.damage = damage

    def remove(self) -> None:
        """Delete the card, then the blocks: a card alone would say that they are missing."""
        keys = [item.key for item in items_in(self._store, self._namespace)]
        delete_items(self._store, self._namespace, sorted(keys, key=lambda key: key != _CARD))
        self.load()


def _key_of(block: bytes) -> str:
    return hashlib.sha256(block).hexdigest()[:32]


def _card_in(item: Item | None) -> tuple[ArchiveCard, list[str]]:
    """A card, and the keys of the blocks that it lists."""
    value = item.value if item is not None else {}
    month, text, blocks = (value.get(key) for key in ("month", "card", "blocks"))
    card = read_card(text.encode("utf-8", "replace") if isinstance(text, str) else b"", str(month))
    return card, [key for key in blocks if isinstance(key, str)] if isinstance(blocks, list) else []


def _text_in(item: Item) -> bytes | None:
    try:
        return unpack(base64.b64decode(item.value["block"], validate=True))
    except (KeyError, TypeError, ValueError):
        return None


def _damage(namespace: Namespace, fault: str, lost: int) -> str:
    return (
        f"the archive {namespace} {fault}; {lost} of the entries it is known to hold cannot be"
        " read from it. Restore its items from a backup; until then messages are taken from the"
        " transcript, and the chain can be neither restored nor archived"
    )
