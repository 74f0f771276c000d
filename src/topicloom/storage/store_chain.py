"""One chain in a LangGraph store: an item an entry, and an archive of packed ones.

The chain is its own items and the archived ones together, and an entry that stands in both is
one entry. What moves is first written where it goes, and only then deleted where it was: killed
in between, everything is there, and the same call again finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, Item

from topicloom.errors import StorageError
from topicloom.storage.chain import RawEntry
from topicloom.storage.store_archive import StoreArchive
from topicloom.storage.store_items import (
    Namespace,
    delete_items,
    items_at,
    items_in,
    put_items,
)
from topicloom.storage.tombstones import is_sound, is_tombstone, merged


class StoreChain:
    """A chain over its items. Not safe for several threads."""

    def __init__(
        self,
        store: BaseStore,
        namespace: Namespace,
        archive: StoreArchive,
        taken: Callable[[RawEntry], None],
    ) -> None:
        """A chain, unknown until it is asked for something.

        Args:
            store: The store.
            namespace: Of its own items.
            archive: Of the others.
            taken: Told of every entry that was read on the way.
        """
        self.namespace = namespace
        self.archive = archive
        self._store = store
        self._taken = taken
        self._prevs: dict[str, str | None] = {}
        self._loaded = False

    def prev(self, ref: str) -> tuple[str | None] | None:
        """The ref before a ref, in a tuple; None when the ref is not in the chain."""
        if ref not in self._prevs and not self._loaded:
            self._load()
        if ref not in self._prevs:
            self._look_up([ref])
            if ref not in self._prevs:
                # Another machine has archived it, or restored it meanwhile.
                self._load_archive()
                self._look_up([ref])
        known = self._prevs if ref in self._prevs else self.archive.lost
        return (known[ref],) if ref in known else None

    def refs(self) -> dict[str, str | None]:
        """The ref before each ref, of all branches."""
        self._load()
        return {**self.archive.lost, **self._prevs}

    def items(self, refs: Sequence[str]) -> list[RawEntry]:
        """Those of some entries that are items, unchecked. Safe beside other threads."""
        return list(map(_raw, items_at(self._store, self.namespace, refs)))

    def archived(self, refs: Sequence[str]) -> list[RawEntry]:
        """Those of some entries that were no items and can be read, unchecked."""
        found: list[RawEntry] = []
        for refresh in (self._look_at_archive, self._load_archive):
            if len(found) < len(refs):
                refresh()
                found += self.archive.read(_absent(refs, found))
        # Another machine may have restored them meanwhile.
        return found + self.items(_absent(refs, found))

    def news(self, head: str | None, entries: Sequence[RawEntry]) -> list[RawEntry]:
        """Those of some entries that are not in the chain, or cannot be read any more."""
        self._look_at_archive()
        refs = [raw.ref for raw in entries]
        self._look_up(refs if head is None else [head, *refs])
        return [raw for raw in entries if raw.ref not in self._prevs]

    def put(self, entries: Sequence[RawEntry]) -> None:
        """Write entries as items."""
        put_items(self._store, self.namespace, {raw.ref: _value(raw) for raw in entries})
        self._prevs.update((raw.ref, raw.prev) for raw in entries)

    def move_to_archive(self, month: str, summary: Mapping[str, Any]) -> bool:
        """Move everything sound into the archive.

        Returns:
            Whether there is anything.

        Raises:
            InputError: The summary is not JSON.
            StorageError: The archive is damaged; nothing was changed.
        """
        entries = self._sound_entries()
        if entries:
            self.archive.write(list(entries.values()), month, summary)
            # What another machine appended meanwhile is not among these, and stays.
            delete_items(self._store, self.namespace, entries)
        return bool(entries)

    def restore(self) -> None:
        """Move everything back into items; nothing to do where nothing is archived.

        Raises:
            StorageError: The archive is damaged; nothing was changed.
        """
        self._load_archive()
        if self.archive.exists:
            entries = self._sound_entries()
            self.put(list(entries.values()))
            if len(self.items(list(entries))) < len(entries):
                raise StorageError(
                    f"namespace {self.namespace} could not be read back after it was written; the"
                    " archive stays"
                )
            self.archive.remove()

    def purge(self, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]) -> int:
        """Put tombstones in the place of entries, wherever they are.

        Args:
            tombstones: By ref.
            summary: Takes the place of the one on the card.

        Returns:
            How many were none yet.

        Raises:
            StorageError: The archive cannot be unpacked; nothing was changed.
        """
        archived = self.archive.entries()
        plain = self.items(list(tombstones))
        old = [raw for raw in (*plain, *archived) if raw.ref in tombstones]
        self.archive.rewrite([tombstones.get(raw.ref, raw) for raw in archived], summary)
        packed = tombstones.keys() & {raw.ref for raw in archived}
        single = tombstones.keys() - packed | {raw.ref for raw in plain}
        self.put([raw for ref, raw in tombstones.items() if ref in single])
        gone = tombstones.keys() - {raw.ref for raw in old}
        return len(gone | {raw.ref for raw in old if not is_tombstone(raw)})

    def _sound_entries(self) -> dict[str, RawEntry]:
        archived = self.archive.entries()
        plain = [raw for raw in map(_raw, items_in(self._store, self.namespace)) if is_sound(raw)]
        entries = merged(archived, plain)
        if not self.archive.lost.keys() <= entries.keys():
            raise StorageError(self.archive.damage)
        return entries

    def _load(self) -> None:
        """Take in the whole chain by pages. What is missed is looked up when it is met."""
        self._loaded = True
        self._load_archive()
        self._take(map(_raw, items_in(self._store, self.namespace)))

    def _look_at_archive(self) -> None:
        if not self.archive.loaded:
            self._load_archive()

    def _load_archive(self) -> None:
        self.archive.load()
        self._prevs.update(self.archive.prevs)

    def _look_up(self, refs: Iterable[str]) -> None:
        """Take in those of some entries that are items."""
        self._take(self.items([ref for ref in refs if ref not in self._prevs]))

    def _take(self, entries: Iterable[RawEntry]) -> None:
        for raw in entries:
            self._prevs[raw.ref] = raw.prev
            if is_sound(raw):
                self._taken(raw)


def _absent(refs: Sequence[str], found: Sequence[RawEntry]) -> list[str]:
    there = {raw.ref for raw in found}
    return [ref for ref in refs if ref not in there]


def _value(raw: RawEntry) -> dict[str, str | None]:
    return {"body": raw.body.decode(), "prev": raw.prev}


def _raw(item: Item) -> RawEntry:
    """The entry in an item; of a damaged item, one that no check lets through."""
    body, prev = item.value.get("body"), item.value.get("prev")
    text = body.encode("utf-8", "replace") if isinstance(body, str) else b""
    return RawEntry(item.key, prev if isinstance(prev, str) else None, text)
