"""What was put away and is asked for by its day: found and quoted, without any model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from reviewed import CONFIG, World
from sessions import last_receipt, open_graph, past, record, tell

from topicloom import RESPONDER, REVIEWER, ROUTER, SPLITTER, Note, Roles, embedded_roles
from topicloom.context.notes import render_note
from topicloom.prompts.wording import get_wording
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.language import Language
from topicloom.state.session import SearchScope
from topicloom.testing import (
    Clock,
    NameRouter,
    ScriptedResponder,
    TaggedSplitter,
    fake_roles,
    make_topic_search,
)


@dataclass
class PlainWorld(World):
    """Nothing but the embedded roles read and route; topics go by their tags."""

    @property
    def roles(self) -> Roles:
        return (
            embedded_roles(HashingEmbedder(256))
            .replace(RESPONDER, self.responder)
            .replace(SPLITTER, TaggedSplitter())
            .replace(REVIEWER, self.reviewer)
        )


@dataclass
class RoutedWorld(PlainWorld):
    """The same with a router that names topics by itself."""

    @property
    def roles(self) -> Roles:
        return super().roles.replace(ROUTER, self.router)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Tea was talked about on 2 March 2026 and put away; it is the middle of April.

    Three topics may be active: what is talked about now, and both of that day.
    """
    return begin(PlainWorld(tmp_path, awake=AWAKE))


AWAKE = {"floor": 0, "usual": 3, "ceiling": 3}


def begin(world: World) -> World:
    world.begin()
    assert world.review().archived == (world.id_of("茶"),)
    world.clock.now += timedelta(days=35)
    return world


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "What did we talk about on 2 March?",
        "What did we talk about on March 2nd, 2026?",
        "Remind me what we discussed on 2026-03-02.",
        "3月2日我们聊了什么？",
        "帮我找一下上个月讨论的茶",
    ],
)
def test_its_day_is_enough(world: World, question: str) -> None:
    tell(world.graph, CONFIG, question)
    tea = world.id_of("茶")
    said = [r.text for r in world.checked() if r.text.startswith("茶")]
    prompt = "\n".join(world.responder.prompts[-1])
    assert any(text in prompt for text in said), "word for word"
    (search,) = last_receipt(world.folder, world.graph, CONFIG).searches
    assert world.topic_table[tea].status == "open"
    assert tea in search.found
    assert search.days is not None
    assert search.days[0] <= "2026-03-02" <= search.days[1]


@pytest.mark.slow
def test_what_was_said_on_that_day_comes_first(world: World) -> None:
    tell(world.graph, CONFIG, "What did we talk about on 2 March?")
    quoted = last_receipt(world.folder, world.graph, CONFIG).quoted
    days = [world.checked()[int(i[1:]) - 1].day for note in quoted for i in note.quotes]
    said = sum(r.day == "2026-03-02" for r in world.checked())
    assert days.count("2026-03-02") >= min(said, len(days)) - 1


@pytest.mark.slow
def test_all_of_a_day_is_listed(world: World) -> None:
    words = get_wording("zh")
    tell(world.graph, CONFIG, "What did we talk about on 2 March?")
    _, _, listed = "\n".join(world.responder.prompts[-1]).rpartition(words.topics_found)
    assert f"- 茶 ({world.id_of('茶')}, 2026-03-02): " in listed
    assert f"- 雨 ({world.id_of('雨')}, 2026-03-02): " in listed
    assert "问问" not in listed, "nothing is to be asked"


@pytest.mark.slow
@pytest.mark.parametrize("named", [{"茶": 0.9}, {"月": 0.9}, {}])
def test_all_of_a_day_is_listed_whatever_a_router_names(
    tmp_path: Path, named: dict[str, float]
) -> None:
    world = begin(RoutedWorld(tmp_path, router=NameRouter(named), awake=AWAKE))
    tell(world.graph, CONFIG, "What did we talk about on 2 March?")
    (search,) = last_receipt(world.folder, world.graph, CONFIG).searches
    assert set(search.listed) == {world.id_of("茶"), world.id_of("雨")}


@pytest.mark.slow
def test_a_small_window_has_room_for_the_whole_list(tmp_path: Path) -> None:
    """By names and days alone, where briefs have no room."""
    responder, clock, tags = ScriptedResponder(), Clock(), "茶雨花月山海"
    graph = open_graph(tmp_path, fake_roles(responder), clock=clock, window=4_000)
    record(graph, CONFIG, *past(*tags, rounds=4))
    tell(graph, CONFIG, "Hello", keep=0)
    clock.now += timedelta(days=5)
    tell(graph, CONFIG, "What did we talk about on 2 March?")
    listed = "\n".join(responder.prompts[-1]).rpartition(get_wording("zh").topics_found)[2]
    assert all(f"- {tag} (" in listed for tag in tags)


@pytest.mark.slow
def test_it_is_said_how_what_was_put_away_can_be_searched(world: World) -> None:
    """Never by the very search that was just made."""
    words = get_wording("zh")
    tell(world.graph, CONFIG, "What did we talk about in November 2025?")
    prompt = "\n".join(world.responder.prompts[-1])
    assert words.other_days.format(missed="2025-11-01 to 2025-11-30") in prompt
    assert words.not_of_days.format(unsearched=1) in prompt
    world.responder.script = [make_topic_search("茶", when="2025-11"), "Well."]
    tell(world.graph, CONFIG, "And then?")
    assert words.not_looked_at.format(unsearched=1) in "\n".join(world.responder.prompts[-1])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_note_says_of_a_search(language: Language) -> None:
    def lines(scope: SearchScope) -> list[str]:
        note = Note(after=1, searched="oak", scope=scope)
        return render_note(note, lambda n: pytest.fail("nothing is quoted"), language).splitlines()[
            1:-1
        ]

    words = get_wording(language)
    found = words.searched.format(query="oak", briefs=3, read=2)
    assert lines(SearchScope(briefs=3, read=2)) == [found]
    left = SearchScope(briefs=3, read=2, unsearched=4)
    assert lines(left) == [found, words.not_looked_at.format(unsearched=4)]
    dated = left.model_copy(update={"missed": "2026-03-02", "other_days": True})
    missed, undated = lines(dated)[1:]
    assert missed == words.other_days.format(missed="2026-03-02")
    assert undated == words.not_of_days.format(unsearched=4)
    assert all(part in undated for part in ("4", "activate_topic", "include_archived", "when"))


@pytest.mark.slow
def test_its_words_are_enough_too(world: World) -> None:
    tell(world.graph, CONFIG, "我们聊过茶的事情吗？")
    assert world.named()["茶"] == "open"


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "茶：第1次说到茶的事情。",
        "On 2 March there was tea, and the rain came.",
        "What did we talk about in November 2025?",
        "What did we talk about on 9 April 2026?",
    ],
)
def test_nothing_else_is(world: World, message: str) -> None:
    tell(world.graph, CONFIG, message)
    assert world.named()["茶"] == "archived"
    prompt = "\n".join(world.responder.prompts[-1])
    put_away = world.store.topic_messages(world.session, world.topic_table[world.id_of("茶")])
    assert not any(r.text in prompt for r in put_away if r.text != message)
