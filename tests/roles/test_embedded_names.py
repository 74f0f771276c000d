"""How the embedded roles name topics."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tables import each_row

from topicloom import BriefRequest, StoredMessage, Topic, default_embedder
from topicloom.hosting import find_keywords
from topicloom.roles.brief import EmbeddedBriefWriter
from topicloom.state.language import Language


def name_after(texts: Sequence[str], former: str, language: Language = "en") -> str:
    """Name of a topic in which these things were said."""
    messages = [
        StoredMessage(seq=i, role="user", text=text, time="2026-03-02T09:00:00")
        for i, text in enumerate(texts, 1)
    ]
    topic = Topic(id="t1", name=former, count=len(messages))
    writer = EmbeddedBriefWriter(default_embedder())
    return writer.call(BriefRequest("s", topic, messages, language)).value.name


VISA = [
    "签证要等多久？护照还有半年效期。",
    "签证中心说护照复印件要两份，你帮我看看材料清单。",
    "护照我昨天寄出去了，签证下周有消息吗？",
    "拿到签证了！护照上贴好了。",
]


def test_a_name_is_what_is_most_said() -> None:
    assert name_after(VISA, "半年效期", "zh") in {"签证", "护照"}


def test_a_name_that_is_still_said_stays() -> None:
    texts = ["The kitchen sink leaks.", "Which kitchen sink fits?", "The sink came, it fits."]
    assert name_after(texts, "Kitchen sink") == "Kitchen sink"


@pytest.mark.parametrize("given", ["Travel papers", "去德国的手续"])
def test_a_name_that_nobody_said_was_given_on_purpose(given: str) -> None:
    assert name_after(VISA, given, "zh") == given


@each_row("pasted", ["a" * 400, "https://x.y/" + "q9" * 400, "x" * 30 + "-" + "y" * 31])
def test_no_name_is_made_of_what_was_pasted(pasted: str) -> None:
    found = name_after([f"The token {pasted}", f"{pasted} is what?"], "")
    assert "token" in found.lower()
    assert pasted[:12] not in found
    assert len(name_after([pasted], "")) < 80


def test_no_phrase_of_han_begins_or_ends_with_a_count_or_a_particle() -> None:
    found = find_keywords(["密封圈昨天到了三个，密封圈的型号对了", "可以装密封圈"], 12)
    assert found[0] == "密封圈"
    assert not any(p[0] in "三个昨了的可" or p[-1] in "三个到了的可" for p in found)


def test_no_keyword_is_part_of_another() -> None:
    found = find_keywords(["密封圈", "换密封圈", "密封圈老化"], 12)
    assert any("密封圈" in phrase for phrase in found)
    assert not {"密封", "封圈"} & {*found}
