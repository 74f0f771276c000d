"""The sample of the inspector: its session is unpacked, or replayed where that cannot be done."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from rich.console import Console
from scripts.generate.sample import pack_folder

from topicloom.memory.stored import get_session
from topicloom.nodes.runs import name_thread
from topicloom.settings import Settings
from topicloom.state.channels import TurnOptions
from topicloom_app.cli.context import make_context
from topicloom_app.cli.sample import open_sample, replay_sample
from topicloom_app.recordings.replay import load_first_conversation

SAID = """\
{"id": "1", "role": "user", "text": "The cat is called Tom."}
{"id": "2", "role": "assistant", "text": "Tom it is."}
"""
THREAD = name_thread("cats")
REPLAYED = "the prepared sample cannot be opened: replaying the conversation instead"
Start = Callable[..., str]
"""Opens the sample as a start of the inspector does, and returns what it printed."""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    file = tmp_path / "cats.jsonl"
    file.write_text(SAID, "utf-8")
    return file


@pytest.fixture
def packed(tmp_path: Path, sample: Path) -> Path:
    """The archive of a session in which the sample was said."""
    context = make_context(tmp_path / "made", Settings(fsync=False))
    replay_sample(context, Console(quiet=True), "cats", load_first_conversation(sample, None))
    pack_folder(context.folder, archive := sample.with_suffix(".zip"))
    return archive


@pytest.fixture
def start(tmp_path: Path, sample: Path) -> Start:
    def begin(say: str = "", **settings: Any) -> str:
        context = make_context(tmp_path / "sessions", Settings(fsync=False, **settings))
        console = Console(file=io.StringIO(), width=200)
        with open_sample(context, console, sample) as (graph, *_):
            assert get_session(graph, THREAD).count == 2
            if say:
                said = [HumanMessage(say)]
                graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
                assert get_session(graph, THREAD).count == 3
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    return begin


@pytest.mark.usefixtures("packed")
def test_nothing_is_replayed(start: Start, tmp_path: Path) -> None:
    assert start() == ""
    assert not (tmp_path / "sessions").exists()


@pytest.mark.usefixtures("packed")
def test_what_is_said_on_the_page_is_gone_at_the_next_start(start: Start) -> None:
    assert start(say="The cat is called Tim.") == ""
    assert start() == ""


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    "settings",
    [{"window": 9_000}, {"embedder": "hashing"}, {"model": "openai:gpt-5", "api_key": "k"}],
)
def test_it_is_opened_with_other_settings_too(start: Start, settings: dict[str, object]) -> None:
    assert start(**settings) == ""


def test_it_is_replayed_if_none_is_there(start: Start) -> None:
    assert REPLAYED in start()


def test_one_of_another_recording_is_replayed(start: Start, sample: Path, packed: Path) -> None:
    assert packed.exists()
    sample.write_text(SAID.replace("Tom it is", "Thomas it is"), "utf-8")
    assert REPLAYED in start()


@pytest.mark.slow
def test_a_damaged_one_never_keeps_the_page_from_opening(start: Start, packed: Path) -> None:
    whole, chance, replayed = packed.read_bytes(), random.Random(1), 0
    for _ in range(40):
        damaged = bytearray(
            whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole
        )
        for _ in range(3):
            if damaged:
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        packed.write_bytes(damaged)
        replayed += REPLAYED in start()
    assert replayed > 20
