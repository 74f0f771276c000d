"""The facts of a user, in all threads that may know them, and as they were at a checkpoint."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from people import People
from sessions import thread

from topicloom import Person, TurnOptions
from topicloom.hosting import name_thread

NUTS, ULM, BONN = "I'm allergic to nuts.", "I live in Ulm.", "I live in Bonn."


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)


def test_what_is_told_in_a_web_chat_is_known_in_slack(people: People) -> None:
    people.learn("web", NUTS)
    assert f"- 2026-03-02: {NUTS}" in people.say("slack", "What shall I cook?")
    assert NUTS not in people.say("other", "What shall I cook?", user="bob")
    assert NUTS not in people.say("nobody", "What shall I cook?", config=thread("nobody"))


WHO = {"": "I sing.", "work": "I lead a team of nine.", "garden": "I grow beans."}


@pytest.mark.slow
def test_facts_are_shared_as_the_guide_says(people: People) -> None:
    """The table of `docs/guides/persons.md`, for facts."""
    for scope, text in WHO.items():
        people.learn(f"from {scope}", text, scope=scope)
    people.learn("of bob", "I box.", user="bob")
    for scope in WHO:
        prompt = people.say(f"to {scope}", "Hello?", scope=scope)
        seen = {text for text in (*WHO.values(), "I box.") if text in prompt}
        assert seen == {WHO[""], WHO[scope]} == people.facts(f"to {scope}")


def test_a_newer_one_said_elsewhere_ends_it(people: People) -> None:
    people.learn("web", ULM, "home")
    people.say("slack", "Hello?")
    people.learn("slack", BONN, "home")
    assert people.facts("web") == people.facts("slack") == {BONN}
    assert people.facts("web", at="2026-03-02") == {ULM}
    (old, new) = people.memory("web").fact_spans()
    assert (old.text, old.since[:10], old.until[:10]) == (ULM, "2026-03-02", "2026-03-03")
    assert (old.thread, old.messages, new.thread) == ("web", ("m1",), "slack")
    prompt = people.say("voice", "Hello?")
    assert BONN in prompt
    assert ULM not in prompt


@pytest.mark.slow
def test_what_goes_there_goes_here(people: People) -> None:
    people.learn("web", NUTS)
    assert NUTS in people.say("slack", "Hello?")
    people.memory("web").forget("m1")
    assert NUTS not in people.say("slack", "Hello again?")
    people.learn("web", ULM)
    people.learn("web", BONN)
    assert ULM in people.say("voice", "Hello?")
    said = people.graph.get_state(thread("web")).values["messages"]
    ulm = next(m for m in said if m.content == ULM)
    people.graph.update_state(thread("web"), {"messages": [RemoveMessage(str(ulm.id))]})
    people.say("web", "Never mind.")
    prompt = people.say("voice", "Hello again?")
    assert ULM not in prompt
    assert BONN in prompt
    people.memory("web").delete()
    assert BONN not in people.say("voice", "Once more?")
    assert not people.kept.threads("ann")


def test_a_fact_is_corrected_and_forgotten_from_any_thread(people: People) -> None:
    people.learn("web", NUTS)
    people.say("slack", "Hello?")
    (key,) = people.memory("slack").facts()
    fixed = people.memory("slack").correct_fact(key, "I'm allergic to all nuts.")
    assert people.facts("web") == {fixed.text} == people.facts("slack")
    people.memory("slack").forget_fact(fixed.key)
    assert not people.facts("web")


@pytest.mark.slow
def test_a_fork_sees_the_facts_of_its_checkpoint(people: People) -> None:
    people.learn("web", ULM, "home")
    people.say("slack", "Hello?")
    before = people.graph.get_state(thread("slack")).config
    people.pass_days(1)
    people.learn("web", BONN, "home")
    people.learn("slack", NUTS)
    assert people.facts("slack") == {BONN, NUTS}
    old = people.graph.get_state(thread("slack")).config
    assert {f.text for f in people.memory("slack").facts().values()} == {BONN, NUTS}
    prompt = people.say("slack", "What if?", config=before)
    assert ULM in prompt
    assert BONN not in prompt
    prompt = people.say("slack", "And then?")
    assert ULM in prompt, "until it is split"
    assert people.facts("slack") == {ULM}
    people.say("slack", "And now?", keep_messages=0)
    assert people.facts("slack") == {BONN}, "the nuts were not said on this branch"
    assert old != before


@pytest.mark.slow
def test_reflections_at_once_lose_nothing(people: People) -> None:
    threads = [f"t{n}" for n in range(6)]
    for name in threads:
        people.subjects[f"I own {name}."] = name
        people.say(name, f"I own {name}.")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(people.reflect, threads))
    assert people.facts("t0") == {f"I own {name}." for name in threads}


def test_what_others_see_is_made_anew(people: People) -> None:
    people.learn("web", NUTS)
    for item in people.store.search(("topicloom", "%people")):
        people.store.delete(item.namespace, item.key)
    assert not people.kept.shared_facts(Person("ann"))
    people.learn("web", ULM)
    prompt = people.say("slack", "Hello?")
    assert NUTS in prompt
    assert ULM in prompt


def test_what_was_taken_back_stays_hidden_from_others(people: People) -> None:
    people.say("slack", "Hello?")
    people.learn("web", NUTS)
    removed = people.graph.get_state(thread("web")).values["messages"][0]
    removal = [RemoveMessage(id=str(removed.id))]
    config = name_thread("web", "ann")
    people.graph.invoke({"messages": removal}, config, context=TurnOptions(answer=False))
    assert people.kept.facts("web")
    assert not people.facts("slack")
    people.learn("web", ULM)
    people.memory("web").correct_fact(next(iter(people.memory("web").facts())), "I live in Kiel.")
    assert people.facts("slack") == {"I live in Kiel."}


def test_a_thread_that_becomes_a_users_brings_its_facts(people: People) -> None:
    people.learn("web", NUTS, config=thread("web"))
    assert NUTS not in people.say("slack", "Hello?")
    people.say("web", "It is me.", user="ann")
    people.learn("web", ULM)
    assert {NUTS, ULM} <= people.facts("slack")


def test_without_a_user_nothing_is_shared(people: People) -> None:
    people.learn("web", ULM, "home", config=thread("web"))
    people.learn("web", BONN, "home", config=thread("web"))
    items = people.store.search(("topicloom",), limit=100)
    assert {item.namespace[1] for item in items} == {"web", "%reflected"}
    spans = people.memory("web").fact_spans()
    assert [(span.text, bool(span.until)) for span in spans] == [(ULM, True), (BONN, False)]


def test_a_first_turn_that_records_knows_too(people: People) -> None:
    people.learn("web", NUTS)
    config = name_thread("slack", "ann")
    people.graph.invoke({"messages": [HumanMessage("Hello?")]}, config)
    assert people.graph.get_state(config).values["session"]["facts"]
