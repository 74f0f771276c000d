"""The least that a storage can be: rows in dicts, with no more than what has to be written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from topicloom import InvalidNameError, SessionBusyError, Storage
from topicloom.storage.backend import Backend, Batch, R, Rows
from topicloom.storage.chain import RawEntry

Table = tuple[str, str]
"""A session, and what the rows are: those of a chain or of an embedding space."""
Tables = dict[Table, dict[str, Any]]


class DictRows(Rows[R]):
    """Rows in a dict."""

    def __init__(self, tables: Tables, name: Table) -> None:
        self._tables = tables
        self._name = name

    def scan(self, *, bodies: bool = True) -> list[R]:
        """All rows."""
        return list(self._tables.get(self._name, {}).values())

    def replace(self, rows: Sequence[R], remove: Collection[str] = ()) -> None:
        """Put rows, then remove others: a table at a time, as if in one step."""
        table = self._tables.get(self._name, {}) | {row.key: row for row in rows}
        self._tables[self._name] = {key: row for key, row in table.items() if key not in remove}

    def where(self, key: str) -> str:
        """The row."""
        return f"row {key} of {self._name[1]}"


class DictBackend(Backend):
    """A session in a dict."""

    def __init__(self, session: str, tables: Tables) -> None:
        super().__init__(session)
        self._tables = tables

    def entries(self, chain: str) -> Rows[RawEntry]:
        """The entries of a chain."""
        if not chain:
            raise InvalidNameError("a name may not be empty")
        return DictRows(self._tables, (self.session, f"chain {chain}"))

    def batches(self, space: str) -> Rows[Batch]:
        """The vectors of an embedding space."""
        return DictRows(self._tables, (self.session, f"vectors {space}"))

    def spaces(self) -> Iterable[Rows[Batch]]:
        """The vectors of every embedding space."""
        own = [name for session, name in self._tables if session == self.session]
        spaces = [name for name in own if name.startswith("vectors ")]
        return [DictRows(self._tables, (self.session, name)) for name in spaces]

    @contextmanager
    def lock(self, *, create: bool) -> Iterator[None]:
        """Keep other threads from writing."""
        with self.mutex:
            if create:
                self._tables.setdefault((self.session, ""), {})
            yield

    def remove(self) -> None:
        """Remove the session's tables."""
        for name in [name for name in self._tables if name[0] == self.session]:
            del self._tables[name]

    def sweep(self, chain: str, *, torn: bool = False) -> None:
        """Nothing is ever half-written."""


class DictStorage(Storage):
    """Sessions in a dict."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables
        self._held: set[str] = set()

    def backend(self, session: str) -> DictBackend:
        """A session."""
        if not session:
            raise InvalidNameError("a name may not be empty")
        return DictBackend(session, self._tables)

    def sessions(self) -> list[str]:
        """Names of all sessions."""
        return sorted({session for session, _ in self._tables})

    @contextmanager
    def lock(self, session: str) -> Iterator[None]:
        """Hold a session."""
        if session in self._held:
            raise SessionBusyError(f"session {session!r} is in use")
        self._held.add(session)
        try:
            yield
        finally:
            self._held.remove(session)
