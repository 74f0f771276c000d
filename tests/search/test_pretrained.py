"""Encoders of sentence-transformers, loaded by the real library, and choosing one by name."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tables import each_row
from tiny_models import COMMIT, in_hub_cache, library, offline, tiny_encoder

from topicloom.errors import UnknownModelError
from topicloom.extras import name_install
from topicloom.search.embedder import Embedder
from topicloom.search.encoders import default_embedder, open_embedder
from topicloom.search.pretrained import SentenceTransformerEmbedder

TEXTS = ["put it on a server", "", "a", "wörter 词", "no " * 600, "a", " \n\t", "\x00"]
IMPORT = (
    "from topicloom.errors import UnknownModelError\n"
    "from topicloom.search.pretrained import SentenceTransformerEmbedder\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return SentenceTransformerEmbedder(folder)


class TestContract:
    def test_shape_and_unit_rows(self, embedder: Embedder) -> None:
        vectors = embedder.embed(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.dimension) == (len(TEXTS), 16)
        assert vectors.dtype == np.float32
        expected = [0.0 if not text.strip(" \n\t\x00") else 1.0 for text in TEXTS]
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(expected, abs=1e-5)

    def test_nothing_to_embed(self, embedder: Embedder) -> None:
        assert embedder.embed([]).shape == (0, 16)
        assert not embedder.embed(["", " \n\t", "\x00", ""]).any()

    def test_batch_equals_single(self, embedder: Embedder) -> None:
        single = np.concatenate([embedder.embed([text]) for text in TEXTS])
        assert np.abs(embedder.embed(TEXTS) - single).max() < 1e-4

    def test_odd_characters_are_embedded(self, embedder: Embedder) -> None:
        odd = ["a\x00b", "cut \ud83d short", "👩‍👩‍👧‍👦 family", "[PAD] [CLS]", "\u202e abc"]
        lengths = np.linalg.norm(embedder.embed(odd), axis=1)
        assert lengths == pytest.approx([1.0] * len(odd), abs=1e-5)

    def test_the_caller_may_change_the_result(self, embedder: Embedder) -> None:
        kept = embedder.embed(TEXTS[:2]).copy()
        embedder.embed(TEXTS[:2])[:] = 7
        assert np.array_equal(embedder.embed(TEXTS[:2]), kept)

    def test_a_pretrained_encoder_serves_several_threads(self, embedder: Embedder) -> None:
        expected = embedder.embed(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(embedder.embed, [TEXTS] * 8):
                assert np.allclose(vectors, expected, atol=1e-4)

    def test_it_gives_what_the_library_gives(self, folder: Path, embedder: Embedder) -> None:
        model = library().SentenceTransformer(str(folder), device="cpu")
        expected = model.encode(TEXTS[0], normalize_embeddings=True)
        assert embedder.embed([TEXTS[0]])[0] == pytest.approx(expected, abs=1e-5)


class TestFingerprint:
    def test_of_a_folder_it_follows_the_files(self, folder: Path, tmp_path: Path) -> None:
        same = shutil.copytree(folder, tmp_path / "encoder")
        (same / "README.md").write_text("described in other words")
        first, again = (SentenceTransformerEmbedder(f).fingerprint for f in (folder, same))
        assert first == again
        assert first.startswith("encoder-")
        other = tiny_encoder(tmp_path / "other", seed=1)
        assert SentenceTransformerEmbedder(other).fingerprint != first

    def test_the_tokens_that_are_read_belong_to_it(self, folder: Path) -> None:
        short = SentenceTransformerEmbedder(folder)
        assert short.fingerprint.endswith("/64")
        words = "a b c d e f g h " * 8
        cut = short.embed([words, words + "z"])
        assert cut[0] == pytest.approx(cut[1], abs=1e-6)

    def test_of_a_hub_name_it_is_the_commit(self, folder: Path, tmp_path: Path) -> None:
        in_hub_cache(tmp_path, folder, "org/tiny")
        code = f"{IMPORT}print(SentenceTransformerEmbedder('org/tiny').fingerprint)"
        assert offline(tmp_path, code).strip() == f"org/tiny@{COMMIT[:12]}/64"


class TestErrors:
    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        library()
        embedder = SentenceTransformerEmbedder(tmp_path / "nothing")
        with pytest.raises(UnknownModelError, match=r"no folder '.*nothing'"):
            embedder.embed(["a"])

    @each_row("name", ["./nothing", "~/nothing/x", "/nothing", "a/b/c"])
    def test_what_is_taken_for_a_folder(self, name: str) -> None:
        library()
        with pytest.raises(UnknownModelError, match="there is no folder"):
            _ = SentenceTransformerEmbedder(name).dimension

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        library()
        with pytest.raises(UnknownModelError, match="holds no model that can be loaded"):
            _ = SentenceTransformerEmbedder(tmp_path).fingerprint

    def test_a_name_that_cannot_be_had(self, tmp_path: Path) -> None:
        library()
        code = (
            f"{IMPORT}try: SentenceTransformerEmbedder('BAAI/bge-m3').dimension\n"
            "except UnknownModelError as error: print(error)"
        )
        assert "'BAAI/bge-m3' is neither in the cache of the hub" in offline(tmp_path, code)

    @pytest.mark.slow
    def test_the_missing_extra_is_named(self) -> None:
        code = (
            "import sys; sys.modules['sentence_transformers'] = None\n"
            "from topicloom.errors import ConfigurationError\n"
            "from topicloom.search.pretrained import SentenceTransformerEmbedder\n"
            "try: SentenceTransformerEmbedder('BAAI/bge-m3').dimension\n"
            "except ConfigurationError as error: print(error)"
        )
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        assert name_install("encoders") in said.stdout


class TestChoice:
    @each_row("name", [None, "", "default", " default "])
    def test_the_one_that_ships(self, name: str | None) -> None:
        assert open_embedder(name) is default_embedder()

    def test_hashing_is_chosen_by_its_name(self) -> None:
        assert open_embedder("hashing").fingerprint.startswith("character-hashing-")

    def test_an_encoder_is_opened_from_a_folder(self, folder: Path, embedder: Embedder) -> None:
        chosen = open_embedder(str(folder))
        assert (chosen.fingerprint, chosen.dimension) == (embedder.fingerprint, 16)
        assert np.allclose(chosen.embed(TEXTS), embedder.embed(TEXTS), atol=1e-5)

    @pytest.mark.slow
    def test_nothing_is_loaded_by_choosing(self) -> None:
        code = (
            "import sys; from topicloom.search.encoders import open_embedder;"
            "open_embedder('BAAI/bge-m3');"
            "sys.exit(bool({'torch', 'sentence_transformers'} & set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_on_an_event_loop(embedder: Embedder) -> None:
    made = await asyncio.gather(*(asyncio.to_thread(embedder.embed, TEXTS) for _ in range(3)))
    assert all(np.allclose(m, made[0], atol=1e-5) for m in made)
