"""Names of topics without a model: whole words, nouns, one line, told from other topics."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st
from tables import each_row

from topicloom.search.embedder import Embedder
from topicloom.search.encoders import default_embedder
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.naming import NAME_LIMIT, SpokenRound, make_name, pair_rounds

MARATHON = [
    "I signed up for the half marathon around the lake on 31 May. Realistic or silly?",
    "Can you give me the weeks? Sunday is the long run.",
    "First long run done, 9.2 km at 7:25. I felt like a tortoise.",
    "The half marathon is in four weeks and my shin hurts.",
    "Ten hops on the left leg, nothing. New shoes bought.",
    "Tomorrow is the half marathon. Start at 9:30, I'm nervous.",
]
KITCHEN = [
    "We're finally starting on the kitchen. Budget is 18,500 euros. Where do I begin?",
    "The sill is only 88 cm above the floor, so we'll fight about the height anyway.",
    "Kitchen cabinets ordered! Solid oak worktop 40 mm.",
    "The kitchen worktop turns black around the sink, says a friend.",
    "The cabinets are standing, and the kitchen is nearly done.",
]
VISA = [
    "我妈想五月过来住一阵，申根签证现在怎么办？",
    "邀请信和那个经济担保是一回事吗？",
    "经济担保办好了！半小时就出来了。",
    "申根签证下来了！有效期到八月，经济担保没用上原件。",
]
PICKLES = [
    "想自己泡一坛四川泡菜，到底放多少盐？",
    "泡菜坛子里长了一层白膜，要倒掉吗？",
    "泡菜坛子洗好了，萝卜脆得不得了。",
]
TORN = {"济担保", "经济担", "根签证", "申根签", "川泡菜", "菜坛", "半程", "签证下", "请信"}
LONE = {"Height", "Tone", "Begin", "Kilometre", "Standing", "Nervous", "Realistic", "Done", "Start"}


def name(
    texts: Sequence[str],
    *,
    former: str = "",
    others: Sequence[str] = (),
    taken: Sequence[str] = (),
    within: Sequence[str] = (),
    embedder: Embedder | None = None,
) -> str:
    """Name of a topic in which the user said these things."""
    by = embedder or default_embedder()
    rounds = [SpokenRound(text) for text in texts]
    return make_name(rounds, by, former=former, others=others, taken=taken, within=within)


def around(texts: Sequence[str]) -> list[str]:
    """What the other topics are about."""
    return ["\n".join(t) for t in (MARATHON, KITCHEN, VISA, PICKLES) if t is not texts]


@pytest.mark.slow
@each_row(
    ("texts", "holds"),
    [
        (MARATHON, "Half marathon"),
        (KITCHEN, "Kitchen"),
        (VISA, "签证"),
        (PICKLES, "泡菜"),
    ],
)
def test_a_name_tells_what_the_topic_is_about(texts: Sequence[str], holds: str) -> None:
    found = name(texts, others=around(texts))
    assert holds.lower() in found.lower()
    assert found not in LONE
    assert not any(re.fullmatch(torn, part) for torn in TORN for part in found.split())
    assert len(found.split()) <= 5


@pytest.mark.slow
@each_row("texts", [MARATHON, KITCHEN, VISA, PICKLES])
def test_a_young_topic_is_named_after_a_few_rounds_too(texts: Sequence[str]) -> None:
    for size in (1, 2, 3):
        found = name(texts[:size], others=around(texts))
        assert found not in LONE
        assert not any(part in TORN for part in found.split())


@each_row(
    ("texts", "expected"),
    [
        (
            ["The first aid course is on Monday.", "Is the first aid course full?"],
            "First aid course",
        ),
        (["I plan a trip to Lagos.", "The trip to Lagos costs 900."], "Trip to Lagos"),
        (["听过《明年今日》这首歌吗？", "《明年今日》是谁写的？"], "《明年今日》"),
        (["The kitchen sink leaks.", "Which kitchen sink fits?"], "Kitchen sink"),
        (["Call `SELECT * FROM birds` again", "birds again"], "Birds"),
        (["弗丽达来了。", "弗丽达吃了四个。", "弗丽达一家三口。"], "弗丽达"),
    ],
)
def test_phrases_are_whole(texts: Sequence[str], expected: str) -> None:
    assert name(texts).startswith(expected)


def test_topics_of_one_conversation_get_names_of_their_own() -> None:
    first = name(KITCHEN)
    second = name(KITCHEN, taken=[first])
    assert second.casefold() != first.casefold()
    assert name(["ok"], taken=["Ok", "OK (2)"]) == "Ok (3)"


def test_a_part_is_not_called_like_the_whole() -> None:
    texts = ["The late forms are at the office.", "Which late forms need a stamp from the embassy?"]
    found = name(texts, within=["Admin", "Late forms"])
    assert "late forms" not in found.lower()
    assert found


def test_what_other_topics_speak_of_names_none() -> None:
    texts = ["Budget for the garden fence?", "The budget is short.", "The fence needs a budget."]
    others = ["The kitchen budget", "Trip and budget", "The budget of the wedding", "Car budget"]
    assert "fence" in name(texts, others=others).lower()


def test_a_settled_topic_keeps_its_name_until_it_is_about_something_else() -> None:
    oak = [f"The oak table needs oil, coat number {n}." for n in range(8)]
    elm = ["The elm bench is next.", "An elm bench needs wax.", "Which wax for an elm bench?"]
    assert name([*oak, *elm], former="Oak table") == "Oak table"
    assert "elm" in name([*oak[:1], *elm * 4], former="Oak table").lower()


def test_a_young_topic_changes_its_name() -> None:
    assert name(MARATHON, former="Tortoise", others=around(MARATHON)) == "Half marathon"


@pytest.mark.parametrize("given_name", ["Travel papers", "去德国的手续"])
def test_a_name_that_nobody_said_was_given_on_purpose(given_name: str) -> None:
    assert name(VISA, former=given_name) == given_name


def test_rounds_are_what_the_user_said_and_the_replies() -> None:
    said = [("assistant", "hello"), ("user", "oak"), ("assistant", "yes"), ("tool", "no")]
    messages = [
        StoredMessage(seq=n, role=role, text=text, time="")
        for n, (role, text) in enumerate([*said, ("user", "")], start=1)
    ]
    found = pair_rounds(messages)
    assert found == [SpokenRound("", "hello"), SpokenRound("oak", "yes\nno"), SpokenRound("", "")]


HASHING = HashingEmbedder()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text(max_size=120) | st.sampled_from([*MARATHON, *VISA, *PICKLES]), min_size=1),
    st.lists(st.text(max_size=30), max_size=3),
)
def test_any_text_gives_a_safe_name_of_one_line(texts: list[str], taken: list[str]) -> None:
    found = name(texts, taken=taken, others=taken, embedder=HASHING)
    assert found
    assert len(found) <= NAME_LIMIT
    assert found == " ".join(found.split())
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in found)
    assert not set(found) & set('<>{}[]`|#"\\/')
    assert found.casefold() not in {t.casefold() for t in taken}


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="签证护照经济担保申根邀请信的了在我妈", min_size=1, max_size=200))
def test_a_run_of_han_of_any_length_is_named(text: str) -> None:
    assert 0 < len(name([text, text], embedder=HASHING)) <= 24


def test_the_same_texts_give_the_same_name() -> None:
    by = default_embedder()
    rounds = [SpokenRound(t) for t in KITCHEN]
    assert len({make_name(rounds, by) for _ in range(3)}) == 1


@each_row(
    ("first", "second", "third"),
    [
        (MARATHON, KITCHEN, "With Mum I argue about her visa."),
        (VISA, PICKLES, "我妈的护照到期了。"),
    ],
)
def test_a_name_is_one_phrase_and_joins_no_two(
    first: Sequence[str], second: Sequence[str], third: str
) -> None:
    for texts in (first, second, [*first, *second], [third, *second]):
        assert not re.search(r"\b(and|or)\b|[与和或、]", name(texts))


@each_row("texts", [MARATHON, KITCHEN, VISA, PICKLES])
def test_a_name_lasts_while_its_topic_grows(texts: Sequence[str]) -> None:
    former, names = "", set[str]()
    for size in range(1, len(texts) + 1):
        former = name(texts[:size], former=former, others=around(texts))
        names.add(former)
    assert len(names) == 1


def test_a_number_makes_no_name_of_what_it_counts() -> None:
    assert name(["400 euros for the boat.", "500 euros for a boat?"]) == "Boat"
