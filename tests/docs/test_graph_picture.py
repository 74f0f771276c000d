"""The graph's picture shows its nodes and labels; those of a reply name topics of the sample."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from topicloom.graph.session import build_session_graph
from topicloom.settings import Settings
from topicloom_app.recordings.replay import find_sample

ROOT = Path(__file__).parents[2]


def tool() -> str:
    """A tool of the application."""
    return ""


@pytest.mark.parametrize("name", ["remembered", "remembered-zh"])
def test_the_picture_of_a_reply_names_a_topic_of_the_sample(name: str) -> None:
    picture = (ROOT / "docs" / "images" / f"{name}.svg").read_text("utf-8")
    (topic,) = re.findall(r"(?:topic |话题)“(.+?)”", picture)
    with ZipFile(find_sample().with_suffix(".zip")) as sample:
        assert f'"{topic}"' in sample.read("lake_house/roster.jsonl").decode("utf-8")


def test_it_is_up_to_date(tmp_path: Path) -> None:
    graph = build_session_graph(settings=Settings(folder=tmp_path), tools=[tool])
    drawn = graph.compile().get_graph()
    picture = (ROOT / "docs" / "images" / "graph.svg").read_text("utf-8")
    edges = {f"{e.source}&#45;&gt;{e.target}" for e in drawn.edges}
    assert set(re.findall(r"<title>(\w+&#45;&gt;\w+)</title>", picture)) == edges
    texts = set(re.findall(r"<text [^>]*>\s*(.*?)\s*</text>", picture))
    assert texts >= {str(e.data) for e in drawn.edges if e.data}
    assert texts >= {name for name in drawn.nodes if not name.startswith("__")}
