"""The refs up to a head."""

from __future__ import annotations

import pytest

from topicloom import StorageError
from topicloom.storage.caches import HeadCache


class Chain:
    """Counts how often the way back is asked for."""

    def __init__(self, length: int) -> None:
        self.prev: dict[str, str | None] = {"0": None}
        self.steps = 0
        for n in range(1, length):
            self.prev[str(n)] = str(n - 1)

    def back(self, ref: str) -> str | None:
        self.steps += 1
        return self.prev[ref]


def test_a_longer_chain_costs_its_new_part() -> None:
    chain, heads = Chain(1000), HeadCache()
    assert len(heads.refs("c", "899", chain.back)) == 900
    chain.steps = 0
    for n in range(900, 1000):
        assert heads.refs("c", str(n), chain.back)[-1] == str(n)
    assert chain.steps == 100
    heads.refs("c", "950", chain.back)
    assert chain.steps == 100
    assert heads.refs("other", None, chain.back) == []


def test_heads_used_long_ago_are_let_go() -> None:
    chain, heads = Chain(10), HeadCache(size=2)
    for head in ("1", "5", "9"):
        heads.refs("c", head, chain.back)
    chain.steps = 0
    assert heads.refs("c", "1", chain.back) == ["0", "1"]
    assert chain.steps == 2


def test_a_circle_is_an_error() -> None:
    with pytest.raises(StorageError, match="circle"):
        HeadCache().refs("c", "a", {"a": "b", "b": "a"}.get)
