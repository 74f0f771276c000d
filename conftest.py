"""No test asserts a time, those of hypothesis included: a busy machine is no defect.

No test reaches out either: connections to anywhere but this machine fail, and so does the test.
Those of a real model, which downloads it, may.

`bin/test` draws fewer examples than `bin/test --all`. `.ci/run` runs a sample (`--sample`), the
same each time: a quarter of the examples, every fifth slow test, and of every second file that has
long ones the first.
"""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=30)
settings.register_profile(
    "sample", settings.get_profile("untimed"), max_examples=25, derandomize=True
)

SHARE = 5
"""Of so many slow tests a sample has one."""
_HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}
_reached_out: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        action="store_true",
        help="of slow tests run every fifth, of every second file that has long ones the first,"
        " and draw a quarter of the examples, the same ones each time",
    )


def pytest_configure(config: pytest.Config) -> None:
    if "not slow" in config.option.markexpr:
        settings.load_profile("quick")
    elif config.option.sample:
        settings.load_profile("sample")
    if config.option.markexpr != "real_model":
        # Not by an audit hook: while one runs, Python lets no other thread install its tracer.
        for name, place in (("connect", 1), ("connect_ex", 1), ("sendto", -1)):
            setattr(socket.socket, name, _stay_here(getattr(socket.socket, name), place))
        socket.getaddrinfo = _stay_here(socket.getaddrinfo, 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What is imported and collected stays: to look for garbage in it takes seconds, and finds none.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.sample:
        kept = set(_choose_sample(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    items[:] = _spread(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _is(mark: str, item: pytest.Item) -> bool:
    return item.get_closest_marker(mark) is not None


def _spread(items: Sequence[pytest.Item], workers: int) -> Iterator[pytest.Item]:
    """In the part that each process begins with, what takes long comes first.

    Else one process would be at it when all others are done.
    """
    kinds = dict[bool, list[pytest.Item]]({True: [], False: []})
    for item in items:
        kinds[_is("slow", item) or _is("long", item)].append(item)
    for part in range(workers):
        for kind in kinds.values():
            yield from kind[len(kind) * part // workers : len(kind) * (part + 1) // workers]


def _choose_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """What is quick; every fifth slow test; of every second file that has long ones the first."""
    slow, long = list[pytest.Item](), dict[Path, pytest.Item]()
    for item in items:
        if _is("long", item):
            long.setdefault(item.path, item)
        elif _is("slow", item):
            slow.append(item)
        else:
            yield item
    yield from slow[::SHARE]
    yield from [*long.values()][1::2]


@pytest.fixture(autouse=True)
def _nobody_reaches_out() -> Iterator[None]:
    yield
    reached, _reached_out[:] = list(_reached_out), []
    assert not reached, f"connections to {reached}"


def _stay_here(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """The same, if what is looked up or connected to, its argument at a place, is this machine."""

    def checked(*arguments: Any, **named: Any) -> Any:
        given = arguments[place] if arguments else named["host"]
        host = given[0] if isinstance(given, tuple) else given if place == 0 else None
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and name not in _HERE:
            _reached_out.append(str(name))
            raise ConnectionRefusedError(f"a test may not reach out to {name}")
        return function(*arguments, **named)

    return checked
