"""A client that sends the whole conversation each time has the branches that it shows, exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from endpoints import Message, Talk, talking
from examples import more
from langchain_core.messages import AIMessageChunk
from sessions import prompt_of

from topicloom import Memory
from topicloom.testing import make_tool_call

CHAT = {"extra_headers": {"X-OpenWebUI-Chat-Id": "c1"}}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as opened:
        yield opened


@pytest.mark.slow
def test_many_turns_an_edit_and_a_regeneration(talk: Talk) -> None:
    said: list[Message] = []
    turns = more(70)
    for turn in range(1, turns + 1):
        said = talk.ask(said, f"茶：第{turn}句话，说的是绿茶和红茶。")
    session = talk.session
    assert talk.remembered(session) == said

    edited = talk.ask(said[:98], "山：第50句话，改了。")
    assert talk.remembered(session) == edited
    edited = talk.ask(edited, "山：改了以后呢？")
    assert talk.remembered(session) == edited
    prompt = prompt_of(talk.responder.requests[-1])
    assert not any(f"第{turn}句话，说的" in prompt for turn in range(50, turns + 1))

    again = talk.ask(said[:118], said[118]["content"])
    assert again[:-1] == said[:119]
    assert again[-1] != said[119]
    assert talk.remembered(session) == again
    again = talk.ask(again, "海：重新回答以后呢？")
    assert talk.remembered(session) == again
    prompt = prompt_of(talk.responder.requests[-1])
    assert not any(f"第{turn}句话" in prompt for turn in range(61, turns + 1))

    said = talk.ask(said, "雨：最后一句话。")
    assert talk.remembered(session) == said
    edited = talk.ask(edited, "山：再说一句。")
    assert talk.remembered(session) == edited
    rows = (talk.folder / session / "transcript.jsonl").read_text("utf-8").splitlines()
    # Nothing was stored twice but the one message that was answered twice.
    assert len(rows) == 2 * (turns + 1) + 6 + 4


@pytest.mark.slow
def test_an_unknown_history_is_recorded_first(talk: Talk) -> None:
    before = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "茶：一"},
        {"role": "assistant", "content": "甲"},
        {"role": "user", "content": "茶：二"},
        {"role": "assistant", "content": "乙"},
    ]
    said = talk.ask(before, "茶：三", **CHAT)
    assert len(talk.responder.requests) == 1
    assert talk.responder.requests[0].messages[0].text.endswith("\n\nBe brief.")
    assert talk.remembered() == said[1:]
    # An edit in what was recorded, and of what a reply said.
    edited = talk.ask(said[:3], "茶：二，改了", **CHAT)
    assert talk.remembered() == edited[1:]
    changed = [*said[:4], {"role": "assistant", "content": "乙，改了"}]
    changed = talk.ask(changed, "茶：三", **CHAT)
    assert talk.remembered() == changed[1:]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["茶：一", "山：另一个"])
def test_the_first_message_asked_again_or_edited(talk: Talk, text: str) -> None:
    said = talk.ask(talk.ask([], "茶：一", **CHAT), "茶：二", **CHAT)
    for _ in range(2):
        other = talk.ask([], text, **CHAT)
        assert talk.remembered() == other
        assert other[-1] not in said
        assert len(talk.responder.requests[-1].messages) == 2  # instructions and message
        other = talk.ask(other, "山：继续", **CHAT)
        assert talk.remembered() == other
    # The client shows the first branch again.
    assert talk.ask(said, "茶：三", **CHAT) == talk.remembered()
    assert talk.session == "c1"


@pytest.mark.slow
def test_a_first_message_that_failed_is_sent_again(talk: Talk) -> None:
    talk.responder.script.append(RuntimeError("no"))
    with pytest.raises(openai.InternalServerError):
        talk.ask([], "茶：钥匙在花盆下", **CHAT)
    said = talk.ask(talk.ask([], "茶：钥匙在花盆下", **CHAT), "茶：二", **CHAT)
    assert talk.remembered() == said
    assert talk.session == "c1"


@pytest.mark.slow
def test_the_first_reply_edited_in_place(talk: Talk) -> None:
    said = talk.ask(talk.ask([], "茶：一", **CHAT), "茶：二", **CHAT)
    changed = [said[0], {"role": "assistant", "content": "甲，改了"}, *said[2:]]
    changed = talk.ask(changed, "茶：三", **CHAT)
    assert talk.remembered() == changed
    assert talk.session == "c1"


@pytest.mark.slow
def test_a_chat_in_a_session_that_is_there_goes_on_behind_it(talk: Talk) -> None:
    thread: Any = {"configurable": {"thread_id": "c1"}}
    talk.graph.invoke({"messages": [("user", "茶：以前说的")]}, thread)
    before = talk.remembered()
    first = talk.ask([], "茶：一", **CHAT)
    assert talk.remembered() == before + first
    assert "以前说的" in prompt_of(talk.responder.requests[-1])
    edited = talk.ask([], "茶：一，改了", **CHAT)
    assert talk.remembered() == before + edited


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_is_continued(talk: Talk, stream: bool) -> None:
    talk.responder.script += ["One, two", " and three.", "Four."]
    said: Any = talk.ask([], "Count to three.", **CHAT)
    chat: Any = CHAT
    answer: Any = talk.client.chat.completions.create(
        model="topicloom", messages=said, stream=stream, **chat
    )
    if stream:
        more = "".join(part.choices[0].delta.content or "" for part in answer)
    else:
        more = answer.choices[0].message.content
    assert more == " and three."
    whole = [said[0], {"role": "assistant", "content": "One, two and three."}]
    assert talk.remembered() == whole
    shown = [m.content for m in talk.responder.requests[1].messages]
    assert str(shown[1]).endswith("Count to three.")
    assert shown[2] == "One, two"
    assert str(shown[3]).startswith("Continue your last message")
    whole = talk.ask(whole, "And then?", **CHAT)
    assert talk.remembered() == whole
    assert "Continue" not in prompt_of(talk.responder.requests[2])


@pytest.mark.slow
def test_a_client_that_leaves_out_the_beginning(talk: Talk) -> None:
    said: list[Message] = []
    for turn in range(6):
        said = talk.ask(said, f"茶：第{turn}句", **CHAT)
    said += talk.ask(said[-4:], "茶：只有结尾", **CHAT)[-2:]
    assert talk.remembered() == said
    # And has its last message answered once more.
    again = talk.ask(said[-6:-2], "茶：只有结尾", **CHAT)
    assert talk.remembered() == said[:-1] + again[-1:]


@pytest.mark.slow
def test_a_client_that_leaves_out_the_beginning_of_talk_with_tools(talk: Talk) -> None:
    said: list[Message] = []
    for turn in range(6):
        call = make_tool_call("weather", {"city": "奥斯陆"})
        talk.responder.script += [call, [AIMessageChunk(content="再看看。"), *call]]
        said = talk.ask(said, f"茶：第{turn}句", **CHAT)
    before = talk.remembered()
    assert [m["role"] for m in before[:6]] == ["user", *["assistant", "tool"] * 2, "assistant"]
    asked = talk.ask(said[-4:], "茶：只有结尾", **CHAT)
    assert talk.remembered() == before + asked[-2:]


@pytest.mark.slow
def test_a_cut_history_over_tools_may_begin_anywhere(talk: Talk) -> None:
    """A client shows a turn with tools of the graph as one reply, and may cut anywhere."""
    call = make_tool_call("weather", {"city": "奥斯陆"})
    said: list[Message] = []
    for turn in range(3):
        talk.responder.script += [call, [AIMessageChunk(content="再看看。"), *call]]
        said = talk.ask(said, f"茶：第{turn}句", **CHAT)
    for first in (3, 2, 1):
        before = talk.remembered()
        said += talk.ask(said[first:], f"茶：从{first}开始", **CHAT)[-2:]
        assert talk.remembered() == before + said[-2:]
        assert talk.session == "c1"


@pytest.mark.slow
def test_two_cut_chats_of_a_user(talk: Talk) -> None:
    """Each is found by its end and gone on with; what the other said stays in view."""
    tea = talk.ask(talk.ask([], "茶：一", user="ann"), "茶：二", user="ann")
    hill = talk.ask(talk.ask([], "山：密码是 4711", user="ann"), "山：二", user="ann")
    tea = talk.ask(tea[2:], "茶：三", user="ann")
    assert "4711" in prompt_of(talk.responder.requests[-1])
    hill = talk.ask(hill[2:], "山：三", user="ann")
    tea = talk.ask(tea[2:], "茶：四", user="ann")
    questions = [m["content"] for m in talk.remembered("ann") if m["role"] == "user"]
    assert questions == [
        "茶：一",
        "茶：二",
        "山：密码是 4711",
        "山：二",
        "茶：三",
        "山：三",
        "茶：四",
    ]
    # The newest one answered once more, cut as it was, takes the place of the one before.
    again = talk.ask(tea[:-2], "茶：四", user="ann")
    assert talk.remembered("ann")[-1] == again[-1]
    assert [m["content"] for m in talk.remembered("ann")].count("茶：四") == 1


@pytest.mark.slow
def test_a_user_without_a_chat_goes_on(talk: Talk) -> None:
    first = talk.ask([], "茶：一", user="ann")
    other = talk.ask([], "山：新的对话", user="ann")
    assert talk.remembered("ann") == first + other
    other = talk.ask(other, "山：继续", user="ann")
    assert talk.remembered("ann") == first + other
    # What is sent once more, as clients do by themselves, is no new chat.
    third = talk.ask([], "茶：三", user="ann")
    assert talk.remembered("ann") == first + other + third
    talk.responder.script.append(RuntimeError("no"))
    with pytest.raises(openai.InternalServerError):
        talk.ask([], "茶：四", user="ann")
    for _ in range(2):
        fourth = talk.ask([], "茶：四", user="ann")
        assert talk.remembered("ann") == first + other + third + fourth
    talk.ask([], "海：别人", user="bob")
    assert "茶：一" not in prompt_of(talk.responder.requests[-1])


@pytest.mark.slow
def test_chats_of_a_user_side_by_side(talk: Talk) -> None:
    tea = talk.ask([], "茶：一", user="ann")
    hill = talk.ask([], "山：密码是 4711", user="ann")
    more = talk.ask(tea, "茶：二", user="ann")
    assert talk.remembered("ann") == tea + hill + more[2:]
    sea = talk.ask([], "海：一", user="ann")
    assert talk.remembered("ann") == tea + hill + more[2:] + sea
    hill = talk.ask(hill, "山：二", user="ann")
    assert talk.remembered("ann")[-2:] == hill[2:]
    # An edit is a branch, from where the edited message was said.
    edited = talk.ask(tea, "茶：二，改了", user="ann")
    assert talk.remembered("ann") == tea + hill[:2] + edited[2:]
    # And so is going back to what was edited.
    talk.ask(more, "茶：三", user="ann")
    assert talk.remembered("ann")[:6] == tea + hill[:2] + more[2:]


@pytest.mark.slow
@pytest.mark.parametrize("user", ["ann@example.org", "../../etc", "topicloom:review:c1", "张三 李"])
def test_names_of_any_kind(talk: Talk, user: str) -> None:
    said = talk.ask(talk.ask([], "茶：一", user=user), "茶：二", user=user)
    assert talk.remembered(talk.session) == said
    assert talk.session.startswith("s-")


@pytest.mark.slow
def test_a_stream_that_the_client_left(talk: Talk) -> None:
    said = talk.ask([], "茶：一", **CHAT)
    talk.responder.script.append("很长 的 回答 " * 200)
    asked: Any = [*said, {"role": "user", "content": "茶：二"}]
    with talk.client.chat.completions.create(
        model="topicloom", messages=asked, stream=True, extra_headers=CHAT["extra_headers"]
    ) as stream:
        part = next(iter(stream)).choices[0].delta.content
    said = talk.ask([*asked, {"role": "assistant", "content": part}], "茶：三", **CHAT)
    assert talk.remembered() == said


@pytest.mark.slow
def test_what_was_purged_does_not_come_back(talk: Talk) -> None:
    said = talk.ask([], "茶：密码是 Quitte", **CHAT)
    said = talk.ask(said, "茶：二", **CHAT)
    thread: Any = {"configurable": {"thread_id": "c1"}}
    Memory.of(talk.graph, thread).forget("m1")
    # The client knows nothing of it and sends it again.
    said = talk.ask(said, "茶：三", **CHAT)
    assert talk.remembered() == [{**said[0], "content": "(removed on request)"}, *said[1:]]
    stored = (talk.folder / "c1" / "transcript.jsonl").read_text("utf-8")
    assert "Quitte" not in json.dumps(stored, ensure_ascii=False)


@pytest.mark.slow
def test_what_was_purged_is_no_other_conversation(talk: Talk) -> None:
    talk.ask([], "茶：密码是 4711", **CHAT)
    Memory.of(talk.graph, {"configurable": {"thread_id": "c1"}}).forget("m1", "m2")
    other: Any = [{"role": "user", "content": "山：一"}, {"role": "assistant", "content": "甲"}]
    assert talk.ask(other, "山：二", **CHAT) == talk.remembered("c1.side")
