"""What a user said in other threads is quoted, and gone where it is gone there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from people import People
from sessions import last_receipt, thread

from topicloom.hosting import find_deps
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.storage.thread_profiles import ThreadProfile

BOILER = "The plumber said that the boiler in Ghent needs a new expansion vessel, part QX-4417."
ASKED = "Which part did the boiler in Ghent need?"


def settle(people: People) -> None:
    """Wait for what goes on behind a turn."""
    find_deps(people.graph).ahead.submit(lambda: None).result()


def open_all(folder: Path, **settings: object) -> People:
    return People(folder, settings={"across_threads": "all", "recall_least": 0.05, **settings})


@pytest.fixture
def people(tmp_path: Path) -> People:
    people = open_all(tmp_path)
    people.say("web", "I planted tulips and garlic in the garden today.")
    people.say("web", BOILER)
    people.say("web", "My sister Nell visits us in June with her two dogs.")
    settle(people)
    people.pass_days(1)
    return people


@pytest.mark.slow
def test_it_is_quoted_word_for_word(people: People) -> None:
    prompt = people.say("slack", ASKED)
    assert f"Said elsewhere, 2 March 2026:\n“{BOILER}”" in prompt
    receipt = last_receipt(people.folder, people.graph, thread("slack"))
    assert [(q.thread, q.message) for q in receipt.other_threads] == [("web", "m3")]
    assert "QX-4417" not in receipt.model_dump_json()
    assert "QX-4417" not in str(people.graph.get_state(thread("slack")).values)
    assert people.say("slack", "Thanks! And what about the weather?").count("QX-4417") == 1
    assert people.say("slack", ASKED).count("QX-4417") == 1, "it is quoted already"


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 0])
def test_topics_are_found_as_well(people: People, keep: int | None) -> None:
    people.say("web", "Something else.", keep_messages=keep)
    settle(people)
    assert BOILER in people.say("slack", ASKED)


@pytest.mark.slow
def test_what_does_not_fit_is_not_quoted(people: People) -> None:
    assert "elsewhere" not in people.say("slack", "How do I sort a list in Python?")
    assert "elsewhere" not in people.say("slack", "ok")


def test_by_default_facts_alone_are_known(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.say("web", BOILER)
    settle(people)
    assert "elsewhere" not in people.say("slack", ASKED)
    assert not people.store.search(("topicloom", "%talks"))


def test_nothing_is_known_where_it_is_off(tmp_path: Path) -> None:
    people = People(tmp_path, settings={"across_threads": "off"})
    people.learn("web", "I'm allergic to nuts.")
    assert "nuts" not in people.say("slack", "What am I allergic to?")


@pytest.mark.slow
def test_nothing_of_other_users_or_scopes_is_quoted(people: People) -> None:
    people.say("work", "The boiler in Ghent has the secret part ZZ-9.", scope="work")
    people.say("of bob", "The boiler in Ghent has part BB-7.", user="bob")
    settle(people)
    for name, scope in (("a", "work"), ("b", "Work"), ("c", "")):
        prompt = people.say(f"slack {name}", ASKED, scope=scope)
        assert BOILER in prompt
        assert ("ZZ-9" in prompt) == (scope == "work")
        assert "BB-7" not in prompt
    bob = people.say("slack of bob", ASKED, user="bob")
    assert "BB-7" in bob
    assert "QX-4417" not in bob
    assert "QX-4417" not in people.say("nobody", ASKED, config=thread("nobody"))


def edit(people: People) -> None:
    said = people.graph.get_state(thread("web")).values["messages"]
    message = next(m for m in said if m.content == BOILER)
    people.graph.update_state(
        thread("web"), {"messages": [message.model_copy(update={"content": "Never mind."})]}
    )
    people.say("web", "Another thing.")


def archive(people: People) -> None:
    people.say("web", "Something else.", keep_messages=0)
    for topic in people.memory("web").topics():
        if topic.state not in ("archived", "merged") and not topic.loose:
            people.memory("web").archive(topic.id)


GOING: list[Callable[[People], object]] = [
    lambda people: people.memory("web").forget("m3"),
    lambda people: people.memory("web").delete(),
    edit,
    archive,
]


@pytest.mark.slow
@pytest.mark.parametrize("go", GOING)
def test_what_is_gone_there_is_gone_here(people: People, go: Callable[[People], object]) -> None:
    """From notes that quoted it, and from what is found next."""
    assert BOILER in people.say("slack", ASKED)
    go(people)
    settle(people)
    assert "QX-4417" not in people.say("slack", "And the tulips?")
    assert "QX-4417" not in people.say("voice", ASKED)
    cards = [i.value for i in people.store.search(("topicloom", "%talks"), limit=99)]
    assert not any("QX" in str(card) for card in cards), "a card has no text"


@pytest.mark.slow
def test_after_a_purge_the_rest_is_found(people: People) -> None:
    people.memory("web").forget("m1")
    assert BOILER in people.say("slack", ASKED)


@pytest.mark.slow
def test_cards_are_made_anew(people: People) -> None:
    people.say("new", "Hello?")
    settle(people)
    for item in people.store.search(("topicloom", "%talks"), limit=99):
        people.store.delete(item.namespace, item.key)
    assert BOILER not in people.say("slack", ASKED)
    people.say("new", "And now?")  # it has no card though it is not new
    settle(people)
    assert BOILER in people.say("voice", ASKED)
    known = find_deps(people.graph).user
    assert known.profiles.remake(people.store, "ann") == 4


@pytest.mark.slow
def test_a_turn_opens_three_others_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = open_all(tmp_path, open_sessions=1)
    for number in range(8):
        people.say(f"web {number}", f"{BOILER} It is the {number}th time.")
    settle(people)
    opened, open_one = set[str](), Workspaces.open

    def count(self: Workspaces, session: str, *given: Any, **options: Any) -> Workspace:
        opened.add(session)
        return open_one(self, session, *given, **options)

    monkeypatch.setattr(Workspaces, "open", count)
    assert BOILER in people.say("slack", ASKED)
    assert len(opened - {"slack"}) == 3


@pytest.mark.slow
def test_it_has_a_share_of_the_recall(tmp_path: Path) -> None:
    people = open_all(tmp_path, recall_tokens=200)
    people.say("web", f"{BOILER} " + "It drips and drips, day and night. " * 60)
    settle(people)
    assert "drips" not in people.say("slack", ASKED), "a quarter of 200 tokens is too little"


def test_a_card_is_small(people: People) -> None:
    (item,) = people.store.search(("topicloom", "%talks"), limit=99)
    card = ThreadProfile.model_validate(item.value)
    assert len(card.model_dump_json()) < 2_000


@pytest.mark.slow
def test_facts_that_are_learnt_meanwhile_are_told_at_once(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.say("slack", "Hello?")
    people.learn("web", "I'm allergic to nuts.")
    assert "- 2026-03-02: I'm allergic to nuts." in people.say("slack", "What shall I cook?")
    assert people.say("slack", "And for dessert?").count("nuts") == 1
    people.memory("web").forget("m1")
    assert "nuts" not in people.say("slack", "And then?")


@pytest.mark.slow
def test_what_held_then_is_found_for_the_past(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.learn("web", "I live in Ulm.", "home")
    people.pass_days(60)
    people.learn("web", "I live in Bonn.", "home")
    people.pass_days(30)
    now = people.say("slack", "Where do I live?")
    assert "I live in Bonn." in now
    assert "I live in Ulm." not in now
    then = people.say("voice", "Where did I live on 10 March 2026?")
    assert "- 2026-03-02 – 2026-05-02: I live in Ulm." in then
    before = people.say("car", "Where did I live before that?")
    assert "I live in Ulm." in before
