"""tiktoken only from its cache folder, and never over the network."""

from __future__ import annotations

import base64
import hashlib
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from langchain_core.messages import HumanMessage
from tiktoken.load import load_tiktoken_bpe

from topicloom.context.token_count import MESSAGE_TOKENS, EstimatingCounter
from topicloom.context.tokens import RANK_FILES, RankFile, TiktokenCounter, choose_counter

URL = "https://ranks.invalid/tiny.tiktoken"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make tiktoken's cache an empty folder, and let tiktoken know a vocabulary named "tiny"."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tiktoken.list_encoding_names()  # finds its own encodings first
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS
    assert constructors is not None
    monkeypatch.setitem(constructors, "tiny", make_tiny)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    return tmp_path


def tiny_data() -> bytes:
    """A rank file of all bytes and "ab"."""
    tokens = [bytes([value]) for value in range(256)] + [b"ab"]
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    return b"".join(lines)


def make_tiny() -> dict[str, Any]:
    """The vocabulary as tiktoken's constructors give one: loaded by way of its cache."""
    ranks = load_tiktoken_bpe(URL, hashlib.sha256(tiny_data()).hexdigest())
    pattern = r"\s*\S+|\s+"
    special = {"<|endoftext|>": len(ranks)}
    return {"name": "tiny", "pat_str": pattern, "mergeable_ranks": ranks, "special_tokens": special}


def tiny_ranks(folder: Path) -> RankFile:
    """Write the vocabulary where tiktoken would look for it."""
    (folder / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(tiny_data())
    return RankFile("tiny", URL, hashlib.sha256(tiny_data()).hexdigest())


def test_a_cached_file_is_used(cache: Path) -> None:
    counter = choose_counter("gpt-4o", {"o200k": tiny_ranks(cache)})
    assert isinstance(counter, TiktokenCounter)
    assert counter.text("abab cab") == 5  # ab ab " " c ab
    assert counter.text("<|endoftext|>") == 13
    assert counter.message(HumanMessage("abab")) == MESSAGE_TOKENS + 2
    assert counter.tools([]) == 0


def test_long_runs_of_one_character(cache: Path) -> None:
    counter = choose_counter("gpt-4o", {"o200k": tiny_ranks(cache)})
    for character in " \nx.":
        assert counter.text(character * 5_000) == 5_000


def test_without_a_file_it_estimates() -> None:
    ranks = RankFile("absent", "https://ranks.invalid/absent.tiktoken", "")
    assert isinstance(choose_counter("gpt-4o", {"o200k": ranks}), EstimatingCounter)


def test_a_damaged_file_is_neither_used_nor_removed(cache: Path) -> None:
    path = cache / hashlib.sha1(RANK_FILES["cl100k"].url.encode()).hexdigest()
    path.write_bytes(b"half a download")
    assert isinstance(choose_counter("gpt-4"), EstimatingCounter)
    assert path.read_bytes() == b"half a download"


def test_without_tiktoken_it_estimates(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = tiny_ranks(cache)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert isinstance(choose_counter("gpt-4o", {"o200k": ranks}), EstimatingCounter)


@pytest.mark.parametrize("model", ["deepseek-chat", "claude-3-opus"])
def test_no_file_for_other_providers(model: str, cache: Path) -> None:
    assert isinstance(choose_counter(model, {"o200k": tiny_ranks(cache)}), EstimatingCounter)


def test_the_folder_is_the_one_tiktoken_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = tiny_ranks(tmp_path)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path))
    assert ranks.find_cached() is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert ranks.find_cached() is None
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert ranks.find_cached() is None
    (tmp_path / "data-gym-cache").mkdir()
    tiny_ranks(tmp_path / "data-gym-cache")
    assert ranks.find_cached() is not None


@pytest.mark.parametrize("name", sorted(RANK_FILES))
def test_files_are_those_of_the_installed_tiktoken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = importlib.import_module("tiktoken_ext.openai_public")
    asked: dict[str, str] = {}

    def load(url: str, expected_hash: str) -> dict[bytes, int]:
        asked.update(url=url, sha256=expected_hash)
        return {}

    monkeypatch.setattr(public, "load_tiktoken_bpe", load)
    public.ENCODING_CONSTRUCTORS[RANK_FILES[name].encoding]()
    assert RankFile(RANK_FILES[name].encoding, **asked) == RANK_FILES[name]
