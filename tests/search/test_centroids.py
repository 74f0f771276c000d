"""Nearest rows, exactly and by cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicloom.search.centroids import NearestRows
from topicloom.search.embedder import Vectors, unit_rows


def rows_of(count: int, seed: int = 0, dimension: int = 16) -> Vectors:
    """Unit rows around 20 centres."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(20, dimension))
    rows = centres[draw.integers(0, 20, count)] + 0.3 * draw.normal(size=(count, dimension))
    return unit_rows(rows.astype(np.float32))


def test_nothing_is_near_in_an_empty_index() -> None:
    nearest = NearestRows(16)
    assert nearest.search(rows_of(1)[0], 5) == []
    nearest.fill(rows_of(0))
    assert nearest.search(rows_of(1)[0], 5) == []


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 100))
def test_exact_search_is_the_sorted_product(count: int, most: int, seed: int) -> None:
    rows = rows_of(count, seed)
    nearest = NearestRows(16)
    nearest.fill(rows)
    found = nearest.search(rows[0], most)
    products = np.sort(rows @ rows[0])[::-1][:most]
    assert [p for _, p in found] == pytest.approx(products.tolist(), abs=1e-5)
    assert len({place for place, _ in found}) == min(count, most)


def test_cells_find_nearly_what_exact_search_finds() -> None:
    rows = rows_of(4_000)
    cells, exact = NearestRows(16, exact=100), NearestRows(16)
    cells.fill(rows)
    exact.fill(rows)
    shared = [
        len({p for p, _ in cells.search(q, 10)} & {p for p, _ in exact.search(q, 10)})
        for q in rows[::200]
    ]
    assert np.mean(shared) > 8


def test_cells_hold_what_they_were_filled_with_last() -> None:
    nearest = NearestRows(16, exact=100)
    for count in (2_000, 2_500, 5_000, 50, 300):
        rows = rows_of(count, seed=count)
        nearest.fill(rows)
        best = [nearest.search(rows[i], 1)[0] for i in (0, count - 1)]
        assert [p for _, p in best] == pytest.approx([1, 1], abs=1e-4)
        assert len(nearest.search(rows[0], 10_000)) <= count
