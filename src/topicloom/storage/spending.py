"""What models used on a day, in a LangGraph store, for all processes that share a limit.

    (topicloom, %spent, <scope>, <name>)   <day>.<unit>.<process> -> what each role used

Each process writes an item of its own, so that none overwrites what another counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from langgraph.store.base import BaseStore

from topicloom.state.limits import add_up
from topicloom.storage.store_items import (
    PREFIX,
    Namespace,
    delete_items,
    find_lock,
    items_in,
    label,
    put_items,
)

_KEPT = timedelta(days=2)
"""How long what was used on a day stays: somewhere the day may go on."""


def read_spent(
    store: BaseStore, scope: str, name: str, day: date, unit: str, *, but: str
) -> dict[str, float]:
    """What each role used on a day, as all processes `but` one counted it; older days go."""
    place, oldest = _find(scope, name), (day - _KEPT).isoformat()
    with find_lock(store):
        items = list(items_in(store, place))
        delete_items(store, place, [item.key for item in items if item.key < oldest])
    of_day = f"{day.isoformat()}.{unit}."
    others = (i for i in items if i.key.startswith(of_day) and i.key != of_day + but)
    return add_up(item.value for item in others)


def write_spent(
    store: BaseStore,
    scope: str,
    name: str,
    day: date,
    unit: str,
    process: str,
    used: Mapping[str, float],
) -> None:
    """Write what each role used on a day, as one process counted it."""
    with find_lock(store):
        put_items(store, _find(scope, name), {f"{day.isoformat()}.{unit}.{process}": used})


def delete_spent(store: BaseStore, scope: str, name: str) -> None:
    """Delete what was counted under a name."""
    place = _find(scope, name)
    with find_lock(store):
        delete_items(store, place, [item.key for item in items_in(store, place)])


def _find(scope: str, name: str) -> Namespace:
    return (PREFIX, "%spent", scope, label(name))
