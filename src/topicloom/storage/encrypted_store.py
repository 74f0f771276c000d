"""Items of a LangGraph store, encrypted: facts, marks and leases."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchOp

from topicloom.errors import EncryptionError, InputError
from topicloom.storage.encryption import EncryptionKeys, name_part

_SEALED = "sealed"


class EncryptedStore(BaseStore):
    """A store that encrypts the items of another one, and the keys that they have.

        graph = builder.compile(checkpointer=saver, store=EncryptedStore(store, keys))

    Namespaces and times stay readable. Items can be listed, but not searched by what they hold.
    """

    def __init__(self, inner: BaseStore, keys: EncryptionKeys) -> None:
        """An item of the other store that is not encrypted yet is refused: see `reencrypt`."""
        self.inner = inner
        self._keys = keys.derive("store")
        self._plain = False

    def with_plain(self) -> EncryptedStore:
        """The same, which reads items that are not encrypted yet as well."""
        made = copy(self)
        made._plain = True
        return made

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        wanted = [self._hide(op) for op in ops]
        found = iter(self.inner.batch([op for hidden in wanted for op in hidden]))
        return [self._show(hidden, found) for hidden in wanted]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        wanted = [self._hide(op) for op in ops]
        found = iter(await self.inner.abatch([op for hidden in wanted for op in hidden]))
        return [self._show(hidden, found) for hidden in wanted]

    def _hide(self, op: Op) -> list[Op]:
        """What the other store is asked in the place of an operation."""
        match op:
            case GetOp():
                return [op._replace(key=name) for name in self._names(op.namespace, op.key)]
            case PutOp():
                newest, *older = self._names(op.namespace, op.key)
                put = op._replace(key=newest, value=self._seal(op, newest), index=False)
                return [put, *(PutOp(op.namespace, name, None) for name in older)]
            case SearchOp() if op.query or op.filter:
                raise InputError(
                    "encrypted items cannot be searched by what they hold: list the namespace"
                    " {namespace}, and choose among its items",
                    namespace=op.namespace_prefix,
                )
        return [op]

    def _show(self, hidden: list[Op], found: Iterator[Result]) -> Result:
        results = [next(found) for _ in hidden]
        match hidden[0]:
            case GetOp():
                items = [self._open(item) for item in results if isinstance(item, Item)]
                return items[0] if items else None
            case SearchOp():
                listed: Any = results[0]
                return [self._open(item) for item in listed]
        return results[0]

    def _names(self, namespace: tuple[str, ...], key: str) -> list[str]:
        """The keys under which an item may stand; that of the newest master key first."""
        names = self._keys.hide("\0".join((*namespace, key)), 32)
        return [*names, *([key] if self._plain else ())]

    def _seal(self, op: PutOp, name: str) -> dict[str, Any] | None:
        if op.value is None:
            return None
        text = json.dumps([op.key, op.value]).encode("ascii")
        sealed = self._keys.seal(text, name_part(*op.namespace, name))
        return {_SEALED: base64.b64encode(sealed).decode("ascii")}

    def _open(self, item: Any) -> Any:
        """An item with its own key and value."""
        if item.value.keys() != {_SEALED}:
            if self._plain:
                return item
            raise EncryptionError(
                "item {key} in namespace {namespace} is not encrypted, and a key is set: to"
                " encrypt what is there, run topicloom key encrypt, or call"
                " reencrypt(storage, store=store)",
                key=item.key,
                namespace=item.namespace,
            )
        sealed = base64.b64decode(item.value[_SEALED])
        opened = self._keys.open(sealed, name_part(*item.namespace, item.key))
        shown = copy(item)  # a store in memory hands out its own
        shown.key, shown.value = json.loads(opened)
        return shown
