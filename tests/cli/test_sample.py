"""The sample of the inspector: replayed at the first start, kept, and never changed by a page."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock
from langchain_core.messages import HumanMessage
from rich.console import Console

from topicloom.cli.context import make_context
from topicloom.cli.sample import make_key, open_sample
from topicloom.memory.stored import get_session
from topicloom.nodes.runs import name_thread
from topicloom.settings import Settings
from topicloom.state.channels import TurnOptions

SAID = """\
{"id": "1", "role": "user", "text": "The cat is called Tom."}
{"id": "2", "role": "assistant", "text": "Tom it is."}
"""
THREAD = name_thread("cats")
Start = Callable[..., str]
"""Opens the sample as a start of the inspector does, and returns what it printed."""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    file = tmp_path / "cats.jsonl"
    file.write_text(SAID, "utf-8")
    return file


@pytest.fixture
def start(tmp_path: Path, sample: Path) -> Start:
    def begin(say: str = "", window: int | None = None) -> str:
        settings = Settings(window=window, fsync=False)
        context = make_context(tmp_path / "sessions", settings)
        console = Console(file=io.StringIO(), width=200)
        with open_sample(context, console, sample, tmp_path / "cache") as (graph, *_):
            assert get_session(graph, THREAD).count == 2
            if say:
                said = [HumanMessage(say)]
                graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
                assert get_session(graph, THREAD).count == 3
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    return begin


def list_kept(folder: Path) -> list[Path]:
    return [file.parent for file in (folder / "cache" / "sample").glob("*/files.json")]


def test_the_first_start_replays_and_the_next_does_not(start: Start, tmp_path: Path) -> None:
    assert "preparing the sample" in start()
    assert start() == ""
    assert len(list_kept(tmp_path)) == 1
    assert not (tmp_path / "sessions").exists()


def test_what_is_said_on_the_page_is_gone_at_the_next_start(start: Start) -> None:
    start(say="The cat is called Tim.")
    assert start(say="The cat is called Tim.") == ""
    assert start() == ""


@pytest.mark.parametrize("damage", ["change", "remove", "leave out"])
def test_a_damaged_one_is_replayed_again(start: Start, tmp_path: Path, damage: str) -> None:
    start()
    (kept,) = list_kept(tmp_path)
    file = kept / ("files.json" if damage == "leave out" else "checkpoints.sqlite")
    if damage == "change":
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    else:
        file.unlink()
    assert "preparing the sample" in start()
    assert start() == ""


def test_other_settings_and_another_sample_are_replayed_anew(
    start: Start, sample: Path, tmp_path: Path
) -> None:
    start()
    assert "preparing the sample" in start(window=9_000)
    assert start() == ""
    assert start(window=9_000) == ""
    sample.write_text(SAID.replace("Tom", "Thomas"), "utf-8")
    assert "preparing the sample" in start()
    assert len(list_kept(tmp_path)) == 3
    for window in (9_001, 9_002, 9_003):
        start(window=window)
    assert len(list_kept(tmp_path)) == 4


def test_a_secret_is_no_part_of_the_name(sample: Path) -> None:
    settings = Settings(api_key="secret")
    assert make_key(settings, sample) == make_key(Settings(), sample)


def test_two_starts_at_once_replay_it_once(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "sample"
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(2) as starts:
        with FileLock(folder / ".lock"):
            both = [starts.submit(start) for _ in range(2)]
            done = [not one.done() for one in both]
        said = [one.result() for one in both]
    assert done == [True, True]
    assert sum("preparing the sample: about" in text for text in said) == 1


def test_a_cache_that_cannot_be_used_is_said_and_done_without(start: Start, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder", "utf-8")
    said = start()
    assert "the sample is not kept for the next start: cannot use" in said
    assert "preparing the sample" in said
