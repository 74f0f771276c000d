"""Topics near to a query, by the mean of their messages and by their briefs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicloom.search.centroids import TopicCentroids
from topicloom.search.embedder import unit_rows
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.vectors import StoredVectors
from topicloom.storage.files import FileStorage

DIMENSION = 64


def open_centroids(folder: Path) -> TopicCentroids:
    """Centroids of a session without topics."""
    log = FileStorage(folder, fsync=False).open("s")
    return TopicCentroids(StoredVectors(HashingEmbedder(DIMENSION), log), DIMENSION)


def test_nothing_is_near_without_topics(tmp_path: Path) -> None:
    centroids = open_centroids(tmp_path)
    query = HashingEmbedder(DIMENSION).embed(["rain"])[0]
    assert centroids.relevance(query) == {}
    centroids.update({}, [])
    assert centroids.relevance(query) == {}


def test_a_topic_is_found_by_its_brief(tmp_path: Path) -> None:
    centroids = open_centroids(tmp_path)
    centroids.update({"t1": "rain in Lagos", "t2": ""}, [np.zeros(DIMENSION)] * 2)
    found = centroids.relevance(HashingEmbedder(DIMENSION).embed(["rain in Lagos"])[0])
    assert found == {"t1": 1.0, "t2": 0.0}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.integers(0, 100))
def test_relevance_is_the_cosine_to_the_mean_on_its_scale(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int
) -> None:
    sums = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    centroids = open_centroids(tmp_path_factory.mktemp("s"))
    centroids.update({f"t{n}": "" for n in range(count)}, list(sums))
    rows = unit_rows(sums.astype(np.float32))
    expected = np.clip((rows @ rows[0] - 0.2) / 0.6, 0, 1)
    found = centroids.relevance(rows[0])
    assert [found[f"t{n}"] for n in range(count)] == pytest.approx(expected.tolist(), abs=1e-4)
