"""Pictures of a reply name topics of the sample."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from topicloom_app import find_sample

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["remembered", "remembered-zh"])
def test_the_picture_of_a_reply_names_a_topic_of_the_sample(name: str) -> None:
    picture = (ROOT / "docs" / "images" / f"{name}.svg").read_text("utf-8")
    (topic,) = re.findall(r"(?:topic |话题)“(.+?)”", picture)
    with ZipFile(find_sample().with_suffix(".zip")) as sample:
        assert f'"{topic}"' in sample.read("lake_house/roster.jsonl").decode("utf-8")
