"""Whatever text comes from outside, the time it takes grows with its length, not with the square.

`re` holds the interpreter's lock: a single call that takes minutes stops every other session of the
process, and no deadline ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from sieve import find_fast_growth
from tables import each_row

from topicloom import count_budget_tokens
from topicloom.context.token_count import EstimatingCounter
from topicloom.hosting import clip, describe_error, telling_words
from topicloom.prompts.loader import load_cues, normalize
from topicloom.reflection.statements import find_assertions, find_statements
from topicloom.review.reviewer import is_informative, parse_review
from topicloom.roles.markup import extract_answers, find_elements, find_json_values, lookups
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.encoders import script_shares
from topicloom.search.excerpts import RankedSentences
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.sentences import passages_of
from topicloom.search.time_expressions import asked_for, parse_when
from topicloom.search.words import NameFinder, words_of
from topicloom.state.fence import fence, fence_line
from topicloom.state.folding import fold
from topicloom.state.language import detect_language
from topicloom.state.message_form import make_storable
from topicloom.state.messages import says_something
from topicloom.state.safe_text import KnownText
from topicloom.state.stored_message import to_stored_message
from topicloom.topics.boundary_cues import cues_of
from topicloom.topics.phrases import find_phrases
from topicloom_app.serve.sent_messages import describe_message


def write_plainly(text: str) -> str:
    """What `fence` does, as two expressions; it takes quadratic time."""
    unseen = "\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164"
    unseen += "\ufe00-\ufe0f\ufeff\uffa0"
    hidden, breaks = rf"\s{unseen}", r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
    left, right = r"[\[［【〔]", r"[\]］】〕]"
    begun = rf"{left}\s?[mtfMTF]\d+\s?{right}|{left}calls\s|\d{{4}}-\d\d-\d\d:[ \t]*$"
    begun += rf"|{left}[^\]］】〕\n]{{1,50}}[:：]\s?[mM]\d+{right}"
    ended = r"[#＃].*[(（]t\d+[)）]|={3,}.*={3,}|--.*--[ \t]*$"
    names = "|".join(f"[{unseen}]*".join(name) for name in ("memory", "topic_brief"))
    tags = re.compile(rf"[<＜](?=[{hidden}/／]*(?:{names})\b)", re.IGNORECASE)
    plain = "\n" + tags.sub("&lt;", text)
    return re.sub(
        rf"({breaks}[{hidden}>＞]*)(?={begun}|{ended})", r"\1\\", plain, flags=re.MULTILINE
    )[1:]


PIECES = (
    *(
        "\n",
        "\r",
        "\r\n",
        "\u2028",
        "\x85",
        " ",
        "\t",
        "\u200b",
        "#",
        "＃",
        "(t1)",
        "（t2）",
        "(t",
        "===",
    ),
    *(
        "=",
        "--",
        "-",
        "[m1]",
        "[t",
        "]",
        "2026-01-01:",
        "image: m4",
        "[",
        "<",
        "/",
        "mem",
        "ory",
        "memory",
        "\u00ad",
        ">",
        "［M2］",
        "【m",
        "】",
        "[calls x",
        "1",
        "x",
    ),
)


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
@settings(max_examples=300)
def test_fence_does_what_it_says(text: str) -> None:
    assert fence(text) == write_plainly(text)


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_a_long_text_is_fenced_like_a_short_one(text: str) -> None:
    plain = "x" * 12_000 + "\n"
    assert fence(plain + text) == fence(plain + text) == plain + fence("\n" + text)[1:]


def known(text: str) -> object:
    return KnownText(text).remove_from(text)


def ranked(text: str) -> object:
    index = LexicalIndex()
    index.add("user", text)
    return index.scores(text[:2_000])


NOW = datetime.fromisoformat("2026-03-02T09:00:00+08:00")
FUNCTIONS: Mapping[str, Callable[[str], object]] = {
    "fence": fence,
    "fence_line": fence_line,
    "KnownText": known,
    "clip": clip,
    "describe_error": lambda t: describe_error(ValueError(t), t[:4_000]),
    "extract_answers": lambda t: list(extract_answers(t)),
    "find_elements": lambda t: list(find_elements(t, "fact")),
    "find_json_values": lambda t: list(find_json_values(t)),
    "lookups": lambda t: list(lookups(t, "fact")),
    "asked_for": lambda t: asked_for(t, NOW),
    "parse_when": lambda t: parse_when(clip(t), NOW),
    "fold": fold,
    "words_of": words_of,
    "telling_words": telling_words,
    "find_phrases": find_phrases,
    "NameFinder": lambda t: NameFinder([t, "a b"]).within(t),
    "passages_of": passages_of,
    "RankedSentences": lambda t: RankedSentences.of(t, "tea and boats").select(400, len),
    "LexicalIndex": ranked,
    "script_shares": script_shares,
    "HashingEmbedder": lambda t: HashingEmbedder().embed([t]),
    "normalize": normalize,
    "amnesia": load_cues("amnesia").found_in,
    "fillers": load_cues("fillers").is_all_of,
    "cues_of": cues_of,
    "find_statements": find_statements,
    "find_assertions": find_assertions,
    "is_informative": lambda t: is_informative(to_stored_message(HumanMessage(t), seq=1, time="")),
    "parse_review": lambda t: parse_review(f"<summary>{t}</summary>"),
    "describe_message": lambda t: describe_message(HumanMessage(t)),
    "make_storable": lambda t: make_storable(HumanMessage([t, {"type": "text", "text": t}])),
    "says_something": lambda t: says_something(AIMessage(t)),
    "detect_language": lambda t: detect_language([t]),
    "EstimatingCounter": EstimatingCounter("o200k").text,
    "count_budget_tokens": count_budget_tokens,
}
"""What reads whole messages, or what models and clients say."""


@pytest.mark.slow
@each_row("name", FUNCTIONS)
def test_what_reads_a_text_from_outside(name: str) -> None:
    assert list(find_fast_growth(FUNCTIONS[name])) == []
