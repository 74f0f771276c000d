"""The sample of the inspector: each start opens a copy of its session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from rich.console import Console
from scripts.generate.sample import pack_folder

from topicloom import Settings, TurnOptions, get_session
from topicloom.hosting import name_thread
from topicloom_app.cli.context import make_context
from topicloom_app.cli.sample import open_sample, replay_sample
from topicloom_app.recordings.replay import load_first_conversation

SAID = """\
{"id": "1", "role": "user", "text": "The cat is called Tom."}
{"id": "2", "role": "assistant", "text": "Tom it is."}
"""
THREAD = name_thread("cats")
Start = Callable[..., None]
"""Opens the sample as a start of the inspector does."""


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
    def begin(say: str = "", **settings: Any) -> None:
        context = make_context(tmp_path / "sessions", Settings(fsync=False, **settings))
        with open_sample(context, sample) as (graph, *_):
            assert get_session(graph, THREAD).count == 2
            if say:
                said = [HumanMessage(say)]
                graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
                assert get_session(graph, THREAD).count == 3

    return begin


@pytest.mark.usefixtures("packed")
def test_the_users_folder_is_left_alone(start: Start, tmp_path: Path) -> None:
    start()
    assert not (tmp_path / "sessions").exists()


@pytest.mark.usefixtures("packed")
def test_what_is_said_on_the_page_is_gone_at_the_next_start(start: Start) -> None:
    start(say="The cat is called Tim.")
    start()


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    "settings",
    [{"window": 9_000}, {"embedder": "hashing"}, {"model": "openai:gpt-5", "api_key": "k"}],
)
def test_it_is_opened_with_other_settings_too(start: Start, settings: dict[str, object]) -> None:
    start(**settings)
