"""A fact is refused if it names what nobody said."""

from __future__ import annotations

from tables import each_row

from topicloom import StoredMessage
from topicloom.reflection.grounding import find_unsaid

SAID = "Aunt Mei asked for 1,200 bricks today, the red ones that Karl's brother sells."
MESSAGE = StoredMessage(seq=1, role="user", text=SAID, time="2026-05-07T10:00:00+00:00")


@each_row(
    "text",
    [
        "They agreed on 1200 red bricks.",
        "On 7 May 2026 the aunt asked Karl for bricks.",
        "After that, Mei's plan was to buy from Karl.",
        "Settled on 2026-05-07.",
        "They settled it on that Thursday.",
        "那天说好了 1200 块红砖。",
        "",
    ],
)
def test_what_was_said_is_said(text: str) -> None:
    undated = MESSAGE.model_copy(update={"time": "10:32 am"})
    assert find_unsaid(text, [MESSAGE, undated]) == []


@each_row(
    ("text", "unsaid"),
    [
        ("They met on October 22, 2023.", ["October", "22", "2023"]),
        ("Mei wanted 1,300 bricks.", ["1,300"]),
        ("She would ask Peter about it.", ["Peter"]),
        ("10月22日定下来了。", ["10", "22"]),
    ],
)
def test_what_nobody_said_is_found(text: str, unsaid: list[str]) -> None:
    assert find_unsaid(text, [MESSAGE]) == unsaid
