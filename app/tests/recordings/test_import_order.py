"""The order in which a session takes exports in: that of time, over all files and chats."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from importing import fill_spool, list_messages, save
from langchain_core.messages import AIMessage, ToolMessage
from vendor_exports import chatgpt, node

from topicloom import StorageUnavailableError
from topicloom_app.recordings.spool import ImportSpool

START = 1_700_000_000


def chat(id: str, *minutes: float, title: str = "") -> dict[str, Any]:
    """A conversation of ChatGPT's: at each of these minutes a question, and a reply to it."""
    nodes, before = [], "root"
    for number, minute in enumerate(minutes):
        for role, later in (("user", 0), ("assistant", 30)):
            name = f"{id}-{number}-{role[0]}"
            time = START + 60 * minute + later
            nodes.append(node(name, before, role, f"{id}{number}{role[0]}", time=time))
            before = name
    return chatgpt(*nodes, id=id, title=title or f"About {id}")


def texts(*paths: Path) -> list[str]:
    return [str(m.content) for m in list_messages(*paths)]


def test_rounds_of_chats_that_overlap_come_as_they_were_said(tmp_path: Path) -> None:
    one = save(tmp_path / "1.json", [chat("b", 5, 20), chat("a", 0, 10)])
    other = save(tmp_path / "0.json", [chat("c", 7)])
    expected = ["a0u", "a0a", "b0u", "b0a", "c0u", "c0a", "a1u", "a1a", "b1u", "b1a"]
    assert texts(one, other) == texts(other, one) == expected


def recording(id: str, *minutes: float) -> dict[str, Any]:
    said = [
        {"id": n, "role": "user", "text": f"{id}{n}", "time": START + 60 * minute}
        for n, minute in enumerate(minutes)
    ]
    return {"id": id, "messages": said}


def test_a_talk_of_many_subjects_is_interrupted_in_a_pause_only(tmp_path: Path) -> None:
    talks = [recording("a", 0, 10, 200, 210), recording("b", 5, 100)]
    lines = "\n".join(map(json.dumps, talks))
    (tmp_path / "t.jsonl").write_text(lines, "utf-8")
    assert texts(tmp_path / "t.jsonl") == ["a0", "a1", "b0", "b1", "a2", "a3"]


def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path) -> None:
    file = save(tmp_path / "c.json", [chat("a", 10, 3, 20), chat("b", 5)])
    assert texts(file)[0::2] == ["b0u", "a0u", "a1u", "a2u"]


def test_a_message_without_a_time_keeps_its_place_and_has_a_date(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "one", "time": "soon"},
        {"role": "assistant", "content": "two", "time": START},
        {"role": "user", "content": "three"},
    ]
    with fill_spool(save(tmp_path / "m.json", said)) as spool:
        messages = [m for piece in spool.pieces() for m in piece.messages]
        found = spool.summary
    assert [m.content for m in messages] == ["one", "two", "three"]
    assert {m.additional_kwargs["time"] for m in messages} == {"2023-11-14T22:13:20+00:00"}
    assert (found.filled, found.undated) == (2, 0)
    assert found.unread.examples == {
        "times that cannot be read": "conversation 1, message m-1: 'soon'"
    }


def test_conversations_without_times_come_last_and_whole(tmp_path: Path) -> None:
    untimed = [{"role": "user", "content": text} for text in ("x", "y")]
    one = save(tmp_path / "m.json", untimed)
    other = save(tmp_path / "c.json", [chat("a", 0)])
    with fill_spool(one, other) as spool:
        pieces = list(spool.pieces())
        assert [[m.content for m in p.messages] for p in pieces] == [["a0u", "a0a"], ["x", "y"]]
        assert spool.summary.undated == 2


def test_what_is_read_back_is_what_was_put_in(tmp_path: Path) -> None:
    """Calls of tools, names and content blocks too."""
    said = [
        {"type": "human", "content": [{"type": "text", "text": "茶"}], "id": "h", "name": "Ann"},
        {
            "type": "ai",
            "content": "",
            "id": "a",
            "tool_calls": [{"name": "w", "args": {"city": "Oslo"}, "id": "c"}],
            "additional_kwargs": {"time": "2025-01-01T00:00:00+08:00"},
        },
        {"type": "tool", "content": "rain", "tool_call_id": "c", "id": "t"},
    ]
    asked, called, answered = list_messages(save(tmp_path / "m.json", said))
    assert (asked.content, asked.name) == ([{"type": "text", "text": "茶"}], "Ann")
    assert isinstance(called, AIMessage)
    assert isinstance(answered, ToolMessage)
    assert called.tool_calls[0]["args"] == {"city": "Oslo"}
    assert answered.tool_call_id == "c"
    assert {m.additional_kwargs["time"] for m in (asked, called, answered)} == {
        "2025-01-01T00:00:00+08:00"
    }


def test_no_room_for_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageUnavailableError, match="Set TMPDIR"):
        ImportSpool()
