"""The nodes of a session graph for the models and the window that a run's context asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any

from cachetools import LRUCache
from langchain_core.runnables import Runnable

from topicloom.context.window import MainWindow
from topicloom.effects import Step, either
from topicloom.nodes.step import Update, node, turn_options
from topicloom.state.channels import TurnOptions

Nodes = Mapping[str, Runnable[Any, Update]]
Variant = tuple[MainWindow, Nodes]
"""The main window of a run, and the nodes, by name."""

_MOST = 16
"""Variants that are kept."""
_window: ContextVar[MainWindow | None] = ContextVar("topicloom_window", default=None)


def current_window(otherwise: MainWindow) -> MainWindow:
    """The main window of the run that this is called in."""
    return _window.get() or otherwise


class Variants:
    """Makes each variant once; those unused for longest make room."""

    def __init__(self, default: Variant, make: Callable[[TurnOptions], Variant]) -> None:
        self._default, self._make = default, make
        self._made: LRUCache[tuple[Any, ...], Variant] = LRUCache(_MOST)
        self._mutex = Lock()

    def pick(self, options: TurnOptions) -> Variant:
        """The variant for a run; raises `ConfigurationError` if a model cannot be opened."""
        key = (options.model, options.cheap_model, options.window)
        if not any(key):
            return self._default
        with self._mutex:
            if key not in self._made:
                self._made[key] = self._make(options)
            return self._made[key]

    def choose(self, name: str) -> Runnable[Any, Update]:
        """The node of that name of whatever variant a run asks for."""

        def step(state: Any) -> Step[Update]:
            window, nodes = self.pick(turn_options())
            chosen = nodes[name]
            invoke, ainvoke = partial(chosen.invoke, state), partial(chosen.ainvoke, state)
            return (yield from either(invoke, ainvoke, _using(window)))

        return node(step, name)


@contextmanager
def _using(window: MainWindow) -> Iterator[None]:
    token = _window.set(window)
    try:
        yield
    finally:
        _window.reset(token)
