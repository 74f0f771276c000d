"""Topics of imported chats: one for each chat, under its title, by the command and by the page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import httpx
import pytest
from command_line import Run, read_rows, run
from importing import begin_import, save
from inspected import inspect, open_folder
from langchain_core.messages import HumanMessage
from sessions import check_kept, open_graph, thread
from vendor_exports import Node, chatgpt, node

from topicloom import (
    BRIEF,
    SPLITTER,
    Brief,
    Memory,
    StoredMessage,
    Topic,
    check_session,
    open_session,
)
from topicloom.hosting import NAME_LIMIT, REMOVED, Graph, build_full_name
from topicloom.state.topic_names import make_distinct
from topicloom.testing import FailingRole, FixedRole, TaggedSplitter, fake_roles
from topicloom_app.recordings.exported import clean_title
from topicloom_app.session_names import make_session_name

__all__ = ["run"]

TEA, RAIN = ([f"{tag}：第{n}句话说的是{tag}。" for n in range(4)] for tag in ("茶", "雨"))


def chat(id: str, title: str | None, texts: Sequence[str], *, first: str = "user") -> Node:
    """A conversation of ChatGPT's, its speakers in turn; those with a later id are later."""
    roles = ["user", "assistant"] if first == "user" else ["assistant", "user"]
    start = 1e9 + 1e6 * ord(id[0])
    nodes = [
        node(f"{id}-{n}", f"{id}-{n - 1}" if n else "root", roles[n % 2], text, time=start + n)
        for n, text in enumerate(texts)
    ]
    return chatgpt(*nodes, id=id, title=title)


def take(graph: Graph, path: Path) -> int:
    """Import a file into a graph's session; returns how many messages were new."""
    return sum(begin_import(graph, thread(), path))


def topics_of(graph: Graph) -> list[tuple[Topic, list[StoredMessage]]]:
    """The topics that hold messages, with these, once the session is found to be in order."""
    session, store = open_session(graph, thread())
    check_kept(store, session)
    assert check_session(graph, thread()) == []
    held = [(t, list(store.topic_messages(session, t))) for t in store.topic_table(session)]
    return [(topic, messages) for topic, messages in held if messages]


def names_of(graph: Graph) -> list[str]:
    return [topic.name for topic, _ in topics_of(graph)]


@pytest.mark.slow
def test_by_the_command_and_by_the_page_alike(run: Run, tmp_path: Path) -> None:
    file = save(
        tmp_path / "c.json",
        [
            chat("a", "Postgres index on jsonb", TEA),
            chat("b", "New chat", RAIN),
            chat("c", "红烧肉的做法", [*RAIN, *TEA]),
            chat("d", "postgres index on JSONB", TEA[:1]),
            chat("e", None, TEA[:2]),
        ],
    )
    for recorded in ("19 messages", "0 messages"):  # the second time there is nothing new
        assert recorded in run("import", "chatgpt", str(file), "--session", "all").out
        rows = read_rows(run, "topics", "all")
        names = [row["name"] for row in rows]
        assert names[0::2][:2] == ["Postgres index on jsonb", "红烧肉的做法"]
        assert names[3] == "postgres index on JSONB (2)"
        assert [row["count"] for row in rows] == [4, 4, 8, 1, 2]
        assert len(set(names)) == 5
        assert "nothing is wrong" in run("check", "all").out

    run("import", "chatgpt", str(file), "--each")
    assert [row["name"] for row in read_rows(run, "topics", "postgres index on JSONB 2")] == [
        "postgres index on JSONB"
    ]


@pytest.mark.slow
async def test_by_the_page(run: Run, tmp_path: Path) -> None:
    file = save(
        tmp_path / "c.json",
        [chat("a", "Tea", TEA * 9), chat("b", "雨", RAIN), chat("c", "", TEA[:3])],
    )
    run("import", "chatgpt", str(file), "--session", "all")
    by_command = read_rows(run, "topics", "all")
    assert [row["name"] for row in by_command[:2]] == ["Tea", "雨"]
    with open_folder(tmp_path / "page") as graph:
        transport = httpx.ASGITransport(inspect(graph, editing=True))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8322") as page:
            await page.get("/?key=secret")
            octets = {"content-type": "application/octet-stream"}
            for _ in range(2):
                path = "/api/session/all/imports"
                taken = await page.post(path, content=file.read_bytes(), headers=octets)
                assert '"error"' not in taken.text
            name = make_session_name("all")
            by_page = (await page.get(f"/api/session/{name}/topics")).json()
    seen = [[(row["name"], row["count"]) for row in rows] for rows in (by_page, by_command)]
    assert seen[0] == seen[1]


def test_no_splitter_is_asked_and_no_brief_writer_names_it(tmp_path: Path) -> None:
    splitter = FailingRole()
    writer = FixedRole(Brief("Another name", "What it is about."))
    roles = fake_roles().replace(SPLITTER, splitter).replace(BRIEF, writer)
    graph = open_graph(tmp_path, roles)
    take(graph, save(tmp_path / "c.json", [chat("a", "Tea", TEA), chat("b", "Untitled", RAIN)]))
    (tea, _), (untitled, _) = topics_of(graph)
    assert (tea.name, tea.brief) == ("Tea", "What it is about.")
    assert untitled.name == "Another name"
    assert not splitter.asked


@pytest.mark.parametrize("first", ["user", "assistant"])
def test_nothing_of_two_chats_is_together(tmp_path: Path, first: str) -> None:
    """Neither where a chat begins with a greeting, nor where it begins with a reply."""
    graph = open_graph(tmp_path)
    texts = ["Hi", "茶：好", "ok"]
    chats = [chat(id, title, texts, first=first) for id, title in (("a", "A"), ("b", ""))]
    take(graph, save(tmp_path / "c.json", chats))
    (_, one), (_, other) = topics_of(graph)
    assert [m.source for m in one] == ["a-0", "a-1", "a-2"]
    assert [m.source for m in other] == ["b-0", "b-1", "b-2"]


@pytest.mark.slow
def test_a_chat_past_a_topics_window_is_divided_under_its_title(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, topic_window=2_200)
    long = [f"{'茶雨'[n // 2 % 2]}：第{n}句，" + "说来话长" * 20 for n in range(120)]
    file = save(tmp_path / "c.json", [chat("a", "A year of it", long), chat("b", "Rain", RAIN)])
    assert take(graph, file) == 124
    held = topics_of(graph)
    session, store = open_session(graph, thread())
    table = store.topic_table(session).topics
    full = [build_full_name(topic, table) for topic, _ in held]
    assert len(held) > 3
    assert full.count("Rain") == 1
    assert all(name.startswith("A year of it") for name in full if name != "Rain")
    assert {m.source for t, ms in held if t.name != "Rain" for m in ms} == {
        f"a-{n}" for n in range(120)
    }
    assert take(graph, file) == 0
    assert topics_of(graph) == held


@pytest.mark.slow
def test_a_chat_that_went_on_stays_one_topic(tmp_path: Path) -> None:
    graph, file = open_graph(tmp_path), tmp_path / "c.json"
    take(graph, save(file, [chat("a", "Tea", TEA[:2]), chat("b", "Rain", RAIN)]))
    graph.invoke({"messages": [HumanMessage("茶：现在说的", id="live")]}, thread())
    longer = [chat("a", "Another title", TEA), chat("b", "Rain", RAIN), chat("c", "Snow", RAIN)]
    assert take(graph, save(file, longer)) == 6
    held = {topic.name: [m.source for m in messages] for topic, messages in topics_of(graph)}
    assert held["Tea"] == ["a-0", "a-1", "a-2", "a-3"]
    assert held["Snow"] == ["c-0", "c-1", "c-2", "c-3"]
    assert held["茶"][0] == "live"  # what is said here is sorted as ever


def test_a_person_names_it_otherwise(tmp_path: Path) -> None:
    graph, file = open_graph(tmp_path), tmp_path / "c.json"
    take(graph, save(file, [chat("a", "Tea", TEA[:2])]))
    Memory.of(graph, thread()).rename("t1", "My tea")
    take(graph, save(file, [chat("a", "Tea", TEA)]))
    assert names_of(graph) == ["My tea"]


def test_an_edited_message_stays_in_its_chat(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    chats = [chat("a", "Tea", TEA), chat("b", "Rain", RAIN)]
    take(graph, save(tmp_path / "c.json", chats))
    graph.update_state(thread(), {"messages": [HumanMessage("雨：改了", id="b-0")]})
    graph.invoke({"messages": [HumanMessage("雪：现在说的", id="live")]}, thread())
    session, store = open_session(graph, thread())
    edited = store.messages(session)[4]
    assert (edited.text, edited.chat, edited.begins) == ("雨：改了", "b-0", True)
    assert [(t.count, {m.chat for m in ms}) for t, ms in topics_of(graph)] == [
        (4, {"a-0"}),
        (4, {"b-0"}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 2])
def test_ended_on_the_way_it_goes_on(tmp_path: Path, turns: int) -> None:
    """With the titles of what was recorded by then, and the same topics in the end."""
    chats = [chat("a", "Tea", TEA * 8), chat("b", "Rain", RAIN * 8)]
    file = save(tmp_path / "c.json", chats)
    graph = open_graph(tmp_path / "one")
    for _ in islice(begin_import(graph, thread(), file), turns):
        pass
    take(graph, file)
    whole = open_graph(tmp_path / "other")
    take(whole, file)
    ended, at_once = ([(t.name, t.count) for t, _ in topics_of(g)] for g in (graph, whole))
    assert ended == at_once == [("Tea", 32), ("Rain", 32)]


def test_where_the_last_turn_failed_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, file = open_graph(tmp_path), save(tmp_path / "c.json", [chat("a", "Tea", TEA)])
    with monkeypatch.context() as patch:
        patch.setattr("topicloom.roles.sorting.move_chats", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            take(graph, file)
    assert take(graph, file) == 0
    assert names_of(graph) == ["Tea"]


def test_conversations_with_many_subjects_are_sorted_as_ever(tmp_path: Path) -> None:
    """Only where each begins is known: its first round goes on with nothing."""
    splitter = TaggedSplitter()
    graph = open_graph(tmp_path, fake_roles(splitter=splitter))
    talks = [
        {
            "id": id,
            "messages": [{"id": n, "role": "user", "text": t} for n, t in enumerate(texts)],
        }
        for id, texts in (("a", [*TEA, *RAIN]), ("b", ["茶：好", *TEA]))
    ]
    lines = "\n".join(json.dumps(talk) for talk in talks)
    (tmp_path / "talks.jsonl").write_text(lines, "utf-8")
    take(graph, tmp_path / "talks.jsonl")
    assert sorted(names_of(graph)) == ["茶", "雨"]
    requests = [(r.rounds, r.continues) for r in splitter.requests]
    (place, odds) = next(
        (n, odds)
        for rounds, odds in requests
        for n, b in enumerate(rounds)
        if b.messages[0].source == "b-0"
    )
    assert place == 0 or odds[place] < 0


def test_a_recording_with_a_title_is_one_topic(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    said = [{"id": n, "role": "user", "text": text} for n, text in enumerate([*TEA, *RAIN])]
    take(
        graph,
        save(tmp_path / "c.json", {"id": "a", "title": "茶和雨", "messages": said}),
    )
    assert names_of(graph) == ["茶和雨"]


@pytest.mark.slow
def test_a_title_goes_with_what_is_purged(run: Run, tmp_path: Path) -> None:
    """And what was purged stays away, though the chat was given another title since."""
    file = save(tmp_path / "c.json", [chat("a", "Secret tea", TEA), chat("b", "Rain", RAIN)])
    run("import", "chatgpt", str(file), "--session", "all")
    run("purge", "all", "--message", "m1", "--yes")
    assert "Secret" not in run("topics", "all", "--json").out
    assert not any(
        "Secret tea" in path.read_text("utf-8", "ignore")
        for path in (tmp_path / "sessions").rglob("*.jsonl")
    )
    for title in ("Secret tea", "Another title"):
        save(file, [chat("a", title, TEA), chat("b", "Rain", RAIN)])
        again = run("import", "chatgpt", str(file), "--session", "all")
        assert "0 messages recorded" in again.out
    texts = [row["text"] for row in read_rows(run, "transcript", "all")]
    assert texts == [REMOVED, *TEA[1:], *RAIN]
    run("chat", "all", stdin="雨：现在说的\n")
    names = [row["name"] for row in read_rows(run, "topics", "all")]
    assert "Secret tea" not in names
    assert "Rain" in names


def test_a_title_is_a_name() -> None:
    assert clean_title("  “Tea\n and\train” ") == "Tea and rain"
    assert clean_title("Berlin / Paris") == "Berlin/Paris"
    assert clean_title("## 红烧肉") == "红烧肉"
    assert len(clean_title("long " * 100)) <= NAME_LIMIT
    for none in (None, 7, "", " ", "…", "New chat", "NEW CHAT", "新聊天", "Untitled", "\ud800"):
        assert clean_title(none) == ""
    assert not re.search("[\ud800-\udfff]", clean_title("tea \ud800"))


def test_names_are_distinct() -> None:
    taken = ["Tea", "tea (2)"]
    assert make_distinct("Rain", taken, NAME_LIMIT) == "Rain"
    assert make_distinct("TEA", taken, NAME_LIMIT) == "TEA (3)"
    long = "x" * NAME_LIMIT
    name = make_distinct(long, [long], NAME_LIMIT)
    assert len(name) == NAME_LIMIT
    assert name.endswith(" (2)")
