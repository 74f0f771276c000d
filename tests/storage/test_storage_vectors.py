"""Vectors by key, in files and in stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from topicloom import FileStorage, InputError, Storage

Reopen = Callable[[], Storage]
KEYS = [f"{n:016x}" for n in range(5)]
VECTORS = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
ROUNDED = VECTORS.astype(np.float16).astype(np.float32)


def test_vectors_round_trip(reopen: Reopen) -> None:
    log = reopen().open("s").vectors("minilm-1/int8")
    log.append(KEYS[:2], VECTORS[:2])
    log.append([], np.zeros((0, 3)))
    log.append(KEYS[2:], VECTORS[2:].astype(np.float64))
    for reader in (log, reopen().open("s").vectors("minilm-1/int8")):
        keys, vectors = reader.load()
        assert keys == KEYS
        assert vectors.dtype == np.float32
        np.testing.assert_array_equal(vectors, ROUNDED)


def test_spaces_are_apart_and_begin_empty(reopen: Reopen) -> None:
    storage = reopen()
    storage.open("s").vectors("a").append(KEYS, VECTORS)
    storage.open("s").vectors("b").append(KEYS[:1], VECTORS[:1, :2])
    keys, vectors = storage.open("s2").vectors("a").load()
    assert (keys, vectors.shape) == ([], (0, 0))
    assert storage.open("s").vectors("b").load()[1].shape == (1, 2)
    assert storage.sessions() == ["s"]


def test_the_newer_of_a_key_wins(reopen: Reopen, request: pytest.FixtureRequest) -> None:
    if "sqlite" in request.node.name:
        pytest.skip("SQLite's store keeps times to the second: within one, either may win")
    log = reopen().open("s").vectors("a")
    log.append(KEYS[:2], VECTORS[:2])
    log.append(KEYS[:1], VECTORS[4:])
    keys, vectors = log.load()
    assert sorted(keys) == KEYS[:2]
    np.testing.assert_array_equal(vectors[keys.index(KEYS[0])], ROUNDED[4])


def test_what_does_not_fit_is_refused(reopen: Reopen) -> None:
    log = reopen().open("s").vectors("a")
    log.append(KEYS, VECTORS)
    again = reopen().open("s").vectors("a")
    for keys, vectors in (
        (KEYS[:2], VECTORS),
        (KEYS, VECTORS[:, 0]),
        (["xyz"], VECTORS[:1]),
        (["A" * 16], VECTORS[:1]),
    ):
        with pytest.raises(InputError):
            again.append(keys, vectors)
    assert len(again.load()[0]) == 5


@pytest.mark.parametrize("left", [0, 5, 31, 32, 33, 45, 46, 47, 60])
def test_a_torn_file(tmp_path: Path, left: int) -> None:
    log = FileStorage(tmp_path).open("s").vectors("a")
    log.append(KEYS, VECTORS)
    [path] = tmp_path.glob("s/vectors-a.bin")
    path.write_bytes(path.read_bytes()[:left])
    whole = max(0, left - 32) // 14
    assert log.load()[0] == KEYS[:whole]
    log.append(KEYS[whole:], VECTORS[whole:])
    np.testing.assert_array_equal(log.load()[1], ROUNDED)
    assert path.stat().st_size == 32 + 5 * 14


def write_magic(path: Path) -> None:
    path.write_bytes(b"\x80\x04" * 50)


def write_dimension(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:16] + (2**31 - 1).to_bytes(4, "little") + bytes(100))


def write_nan(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2] + np.float16("nan").tobytes())


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [write_magic, write_dimension, write_nan, put_folder])
def test_a_damaged_file_is_made_anew_or_done_without(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    session = FileStorage(tmp_path).open("s")
    head = session.append("transcript", None, [{"text": "x"}])
    log = session.vectors("a")
    log.append(KEYS, VECTORS)
    harm(tmp_path / "s/vectors-a.bin")
    assert len(log.load(3)[0]) < 5
    again = FileStorage(tmp_path).open("s").vectors("a")
    again.append(KEYS, VECTORS)
    if harm is put_folder:
        assert again.load(3)[0] == []
        return
    np.testing.assert_array_equal(again.load(3)[1], ROUNDED)
    harm(tmp_path / "s/vectors-a.bin")
    assert session.purge("transcript", [str(head)]) == 1


def test_those_of_another_dimension_give_way(reopen: Reopen) -> None:
    reopen().open("s").vectors("a").append(KEYS, VECTORS)
    log = reopen().open("s").vectors("a")
    assert log.load(2)[0] == []
    log.append(KEYS[:2], VECTORS[:2, :2])
    assert reopen().open("s").vectors("a").load()[0] == KEYS[:2]
    assert reopen().open("s").vectors("a").load(3)[0] == []
