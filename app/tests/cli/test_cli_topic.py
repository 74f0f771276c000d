"""`topicloom topics`, `search`, `quote` and `topic ...`: looking, changing and undoing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Run, assert_one_line, read_rows, replay_recording
from langchain_core.messages import AnyMessage, HumanMessage
from sessions import open_graph, past, record, tell, thread

from topicloom import TurnOptions, build_session_graph
from topicloom.hosting import name_thread
from topicloom_app.cli.console import CliOptions
from topicloom_app.cli.context import open_context


@pytest.fixture
def talk(run: Run, recording: Path) -> Run:
    replay_recording(run, recording)
    return run


@pytest.mark.slow
def test_what_was_said_is_found_and_quoted(talk: Run) -> None:
    best = read_rows(talk, "search", "talk", "oak worktop at Berger's", "-n", "3")
    assert len(best) == 3
    assert "Berger" in "".join(hit["text"] for hit in best)
    assert read_rows(talk, "quote", "talk", best[0]["id"])[0]["text"] == best[0]["text"]
    dated = read_rows(talk, "search", "talk", "worktop", "--since", "2026-03-20")
    assert dated
    assert all(hit["time"] >= "2026-03-20" for hit in dated)
    assert best[0]["id"] in talk("search", "talk", "oak worktop at Berger's", "-n", "3").out
    assert "nothing was found" in talk("search", "talk", "x", "--since", "2031-01-01").out
    assert_one_line(talk("quote", "talk", "m99"), "no message 'm99'", "m1 to m32")
    assert_one_line(talk("search", "talk", "x", "--since", "soon"), "not a day")


@pytest.mark.slow
def test_a_refused_change_is_told_in_chinese_and_leaves_no_trace(
    talk: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, *_ = (t["id"] for t in read_rows(talk, "topics", "talk") if t["count"])
    assert talk("topic", "rename", "talk", one, "Lake house").code == 0
    before = read_rows(talk, "topic", "changes", "talk")
    assert_one_line(talk("topic", "restore", "talk", one), f"{one} is ", ", not archived")
    monkeypatch.setenv("TOPICLOOM_LANGUAGE", "zh")
    for arguments, said in (
        (("rename", "talk", other, "Lake house"), f"{one} 已经叫“Lake house”"),
        (("merge", "talk", one, one), f"{one} 不能合并到自己"),
        (("restore", "talk", other), f"{other} 的状态是"),
        (("pin", "talk", "t99"), "里没有话题 't99'（现有：t1 到 t"),
        (("split", "talk", one, "m99", "x"), "没有消息 'm99'"),
    ):
        refused = talk("topic", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
        assert not re.search("dormant|active", refused.err)
    assert read_rows(talk, "topic", "changes", "talk") == before


@pytest.mark.slow
def test_topics_are_changed_and_changed_back(talk: Run) -> None:
    before = read_rows(talk, "topics", "talk")
    one, other, *_ = (t["id"] for t in before if t["count"])
    for arguments in (
        ("rename", "talk", one, "Lake house"),
        ("pin", "talk", one),
        ("pin", "talk", one, "--off"),
        ("merge", "talk", other, one),
        ("split", "talk", one, "m1", "Beginnings"),
        ("move", "talk", "m1", one),
        ("archive", "talk", one),
        ("restore", "talk", one),
    ):
        done = talk("topic", *arguments)
        assert (done.code, done.err) == (0, ""), arguments
        assert {"split": "m1"}.get(arguments[0], arguments[2]) in done.out
    assert "Lake house" in talk("topics", "talk").out
    made = [c for c in read_rows(talk, "topic", "changes", "talk") if c["author"] == "user"]
    assert len(made) == 8
    assert "Lake house" in talk("topic", "changes", "talk").out
    for change in reversed(made):
        assert change["event"] in talk("topic", "undo", "talk").out.replace("\n", " ")
    held = [(t["name"], t["count"]) for t in read_rows(talk, "topics", "talk")]
    assert held == [(t["name"], t["count"]) for t in before]
    assert_one_line(talk("topic", "undo", "talk"), "nothing to undo")


def test_a_chat_that_goes_on_takes_it_over(talk: Run, tmp_path: Path) -> None:
    context = open_context(CliOptions(tmp_path / "sessions"))
    with context.open_checkpoints() as saver:
        graph = build_session_graph(settings=context.settings, storage=context.storage)
        app = graph.compile(checkpointer=saver)
        assert talk("topic", "rename", "talk", "t1", "Lake house").code == 0
        said: list[AnyMessage] = [HumanMessage("Good morning.")]
        app.invoke({"messages": said}, name_thread("talk"), context=TurnOptions(answer=False))
    assert "Lake house" in talk("topics", "talk").out
    assert read_rows(talk, "transcript", "talk", "--last", "1")[0]["text"] == "Good morning."


@pytest.mark.slow
def test_a_session_whose_checkpoints_are_elsewhere(run: Run, tmp_path: Path) -> None:
    graph = open_graph(tmp_path / "sessions")
    record(graph, thread("yue"), *past("茶", "雨", rounds=3))
    tell(graph, thread("yue"), "山：还有吗？", keep=0)
    assert [t["name"] for t in read_rows(run, "topics", "yue")] == ["茶", "雨"]
    assert run("topic", "rename", "yue", "t1", "Tea house").code == 0
    tell(graph, thread("yue"), "山：第二次。")
    assert [t["name"] for t in read_rows(run, "topics", "yue")] == ["Tea house", "雨"]


def test_what_cannot_be_done_is_one_line(talk: Run) -> None:
    assert_one_line(talk("topic", "rename", "talk", "t99", "x"), "no topic 't99'")
    assert_one_line(talk("topic", "move", "talk", "m99", "t1"), "no message 'm99'")
    assert_one_line(talk("topic", "restore", "talk", "t1"), "not archived")
    assert_one_line(talk("topic", "rename", "none", "t1", "x"), "no session 'none'")
