"""tiktoken only from its cache folder, and never over the network."""

from __future__ import annotations

import base64
import hashlib
import importlib
import sys
import tempfile
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from topicloom.context.token_count import MESSAGE_TOKENS, EstimatingCounter
from topicloom.context.token_ranks import RANK_FILES, RankFile, TiktokenCounter
from topicloom.context.tokens import choose_counter

URL = "https://ranks.invalid/tiny.tiktoken"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make tiktoken's cache an empty folder."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def tiny_ranks(folder: Path) -> RankFile:
    """Write a vocabulary of all bytes and "ab" where tiktoken would look for it."""
    tokens = [bytes([value]) for value in range(256)] + [b"ab"]
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    data = b"".join(lines)
    (folder / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(data)
    return RankFile(URL, hashlib.sha256(data).hexdigest(), RANK_FILES["o200k"].pattern)


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
    ranks = RankFile("https://ranks.invalid/absent.tiktoken", "", "")
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
    assert ranks.cached() is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert ranks.cached() is None
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert ranks.cached() is None
    (tmp_path / "data-gym-cache").mkdir()
    tiny_ranks(tmp_path / "data-gym-cache")
    assert ranks.cached() is not None


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
    pattern = public.ENCODING_CONSTRUCTORS[f"{name}_base"]()["pat_str"]
    assert RankFile(pattern=pattern, **asked) == RANK_FILES[name]
