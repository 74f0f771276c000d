"""Boundary weights on disk: read as written, refused with a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from topicloom import ConfigurationError, default_embedder
from topicloom.lab import PACKAGED, BoundaryModel, Network
from topicloom_lab.boundary_models import MODES, NAMES, load_trained
from topicloom_lab.training.boundary import save_model


def network(mode: str) -> Network:
    rng = np.random.default_rng(3)
    count = len(NAMES[mode])
    return Network(
        mean=rng.normal(size=(2, count)).astype(np.float32),
        spread=np.ones((2, count), dtype=np.float32),
        inner=rng.normal(size=(count + 1, 4)).astype(np.float32),
        outer=rng.normal(size=5).astype(np.float32),
    )


def model() -> BoundaryModel:
    return BoundaryModel(
        learned=np.random.default_rng(4).normal(size=(6, 3)).astype(np.float32),
        nets={mode: network(mode) for mode in MODES},
        thresholds={
            "online": {"auto": 0.3, "fine": 0.2, "coarse": 0.4},
            "retrospective": {"auto": 0.5, "fine": 0.4, "coarse": 0.6},
        },
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Weights that were just written."""
    target = tmp_path / "w.npz"
    save_model(target, model(), "toy-1", {"figures": []})
    return target


def test_what_was_written_is_read(path: Path) -> None:
    found, given = load_trained(path, "toy-1"), model()
    assert found.thresholds == given.thresholds
    assert found.nets["online"].mean.tolist() == given.nets["online"].mean.tolist()
    np.testing.assert_allclose(found.nets["online"].inner, given.nets["online"].inner, atol=2e-2)
    np.testing.assert_allclose(found.learned, given.learned, atol=2e-2)


def test_another_embedder_is_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="vectors of 'toy-1', not of 'other'"):
        load_trained(path, "other")


@pytest.mark.parametrize("other", [{"features": 0}, {"names": {"online": ["given.lag1"]}}])
def test_another_version_of_the_features_is_refused(path: Path, other: dict[str, object]) -> None:
    beside = path.with_suffix(".json")
    beside.write_text(json.dumps(json.loads(beside.read_text()) | other))
    with pytest.raises(ConfigurationError, match=r"features.*train again"):
        load_trained(path, "toy-1")


@pytest.mark.parametrize("name", ["w.npz", "w.json"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"PK\x03\x04 no archive"])
def test_broken_files_are_named(path: Path, name: str, content: bytes | None) -> None:
    broken = path.with_name(name)
    broken.unlink()
    if content is not None:
        broken.write_bytes(content)
    with pytest.raises(ConfigurationError, match=re.escape(str(path.parent))):
        load_trained(path, "toy-1")


def test_the_packaged_weights_fit_the_packaged_embedder() -> None:
    load_trained(PACKAGED, default_embedder().fingerprint)
    size = PACKAGED.stat().st_size
    assert size < 100_000
