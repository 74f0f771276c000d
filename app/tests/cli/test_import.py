"""`topicloom import`: what other chats exported, with times and ids, each message once."""

from __future__ import annotations

import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from command_line import Run, assert_one_line, write
from hypothesis import example, given, settings, strategies as st
from importing import list_messages, read_one
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)
from vendor_exports import CLAUDE, MIXED, chatgpt, node

from topicloom import NotAConversationError
from topicloom.hosting import REMOVED
from topicloom_app import load_conversations
from topicloom_app.recordings.exports import read_exports


def claude(name: str, uuid: str, text: str) -> str:
    """A conversation of Claude's, as JSON."""
    said = {"uuid": uuid, "sender": "human", "text": text}
    return json.dumps({"uuid": f"{name}-{uuid}", "name": name, "chat_messages": [said]})


CLAUDE_ONE, CLAUDE_TWO = claude("one", "b", "tea"), claude("two", "c", "rain")
LINE_A, LINE_B = (json.dumps({"type": "human", "content": t}) for t in ("tea", "rain"))
ROLE_A, ROLE_B = (json.dumps({"role": "user", "content": t}) for t in ("tea", "rain"))
OWN_A, OWN_B = (
    json.dumps({"id": f"m{n}", "seq": n, "role": "user", "text": t, "time": ""})
    for n, t in ((1, "tea"), (2, "rain"))
)
TALK_A, TALK_B = (
    json.dumps({"id": t, "messages": [{"id": 1, "role": "user", "text": t}]})
    for t in ("tea", "rain")
)
MESSAGES = [
    SystemMessage("Be brief."),
    HumanMessage("Weather?", id="h"),
    AIMessage("", id="a", tool_calls=[{"name": "w", "args": {"city": "Oslo"}, "id": "c"}]),
    ToolMessage("rain", tool_call_id="c", id="t"),
    AIMessage("Rain.", id="b"),
]


def stored(run: Run, name: str) -> list[dict[str, Any]]:
    out = run("transcript", name, "--json").out
    return [json.loads(line) for line in out.splitlines()]


def save(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return str(path)


def talk(id: str, count: int, start: float) -> dict[str, Any]:
    """A conversation of ChatGPT's of so many rounds."""
    nodes = [
        node(
            f"{id}-{n}", f"{id}-{n - 1}" if n else "root", role, f"茶：{id}第{n}句", time=start + n
        )
        for n in range(2 * count)
        for role in ["assistant" if n % 2 else "user"]
    ]
    return chatgpt(*nodes, id=id)


@pytest.mark.slow
def test_a_chatgpt_export_is_recorded_with_its_times(run: Run, tmp_path: Path) -> None:
    outcome = run("import", "chatgpt", save(tmp_path / "c.json", [MIXED]), "--session", "old")
    rows = stored(run, "old")
    assert [(r["role"], r["text"], r["source"]) for r in rows] == [
        ("user", "茶：哪种茶？", "q1"),
        ("assistant", "Green\ntea.", "a1"),
        ("user", "And this?\n\n[image]", "q2"),
        ("assistant", "A cup.", "a2"),
    ]
    assert rows[0]["time"] == "2023-11-14T22:13:20+00:00"
    for line in (
        "1 conversation: 4 messages recorded in session old",
        "left out: instructions and settings (2)",
        "left out: other branches, edited or answered again (1)",
        "left out: reasoning (1)",
        "left out: calls of tools (1)",
        "left out: results of tools (1)",
        "to ask about it: topicloom chat old",
    ):
        assert line in outcome.out
    again = run(
        "--language", "zh", "import", "chatgpt", str(tmp_path / "c.json"), "--session", "old"
    )
    assert "略过：指令和设置（2）\n" in again.out
    left_out = "".join(re.findall("略过.*", again.out))
    assert not re.search("[a-z]", left_out), left_out
    assert "要提问" not in again.out


@pytest.mark.slow
def test_a_claude_archive_is_recorded(run: Run, tmp_path: Path) -> None:
    archive = tmp_path / "data.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("conversations.json", json.dumps([CLAUDE]))
        packed.writestr("users.json", "[]")
    outcome = run("import", "claude", str(archive), "--session", "old")
    assert [(r["role"], r["text"], r["source"]) for r in stored(run, "old")] == [
        ("user", "Rain?\n\nnotes.txt:\nIt rains.\n\n[file: sky.png]", "h1"),
        ("assistant", "Yes.\nTake a coat.", "r1"),
        ("user", "An old form", "h2"),
    ]
    assert stored(run, "old")[0]["time"].startswith("2026-01-02T03:04:05")
    for what in ("reasoning", "calls of tools", "results of tools", "without a text"):
        assert f"left out: {what} (1)" in outcome.out


@pytest.mark.slow
def test_side_files_of_an_export_are_counted_and_unknown_ones_named(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "chatgpt"
    folder.mkdir()
    (folder / "conversations.json").write_text(json.dumps([CLAUDE]), "utf-8")
    side = {
        "user.json": '{"id": "u", "email": "a@b.c"}',
        "message_feedback.json": "[]",
        "shared_conversations.json": '[{"id": "s", "title": "Rain"}]',
        "model_comparisons.json": "[]",
        "chat.html": "<html><body><script>var jsonData = []</script></body></html>",
        "file-a1B2": "text of an attachment",
    }
    for name, text in side.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "file_0001").write_bytes(b"\x89PNG\xff\xfe")
    (folder / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    (folder / "notes.json").write_text('{"colour": "blue"}', "utf-8")
    outcome = run("import", str(folder), "--session", "s")
    assert f"left out: files of the export that hold no conversation ({len(side) + 1})\n" in (
        outcome.out
    )
    (unknown,) = (line for line in outcome.out.splitlines() if "not understood" in line)
    assert "files without a conversation that is known (1)" in unknown
    assert "notes.json, it has 'colour'" in unknown
    assert not [name for name in side if name in outcome.out]
    alone = run("import", str(folder / "user.json"), "--session", "s")
    assert alone.code == 2
    assert "user.json" in alone.err


def test_no_model_is_missed_where_none_is_needed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps([CLAUDE]), "utf-8")
    assert "no model" not in run("import", str(tmp_path / "c.json"), "--session", "s").out


@pytest.mark.slow
def test_conversations_without_ids_of_messages(run: Run, tmp_path: Path) -> None:
    """Each is taken in, and once, though the messages of all are numbered alike."""
    chats = [
        {"uuid": name, "chat_messages": [{"sender": "human", "text": f"茶：{name}"}]}
        for name in ("c", "d")
    ]
    for _ in range(2):
        run("import", "claude", save(tmp_path / "c.json", chats), "--session", "old")
        assert [r["text"] for r in stored(run, "old")] == ["茶：c", "茶：d"]


@pytest.mark.slow
def test_what_was_removed_does_not_come_back(run: Run, tmp_path: Path) -> None:
    """Nor does it keep out another message whose counted id is the same."""
    one, other = ([f"茶：{name}{n}" for n in range(4)] for name in "cd")

    def chat(name: str, texts: list[str]) -> dict[str, Any]:
        said = [{"sender": ("human", "assistant")[n % 2], "text": t} for n, t in enumerate(texts)]
        return {"uuid": name, "chat_messages": said}

    for _ in range(2):
        run("import", "claude", save(tmp_path / "c.json", [chat("c", one)]), "--session", "old")
        run("purge", "old", "--message", "m1", "--message", "m4", "--yes")
    chats = [chat("c", [*one, "茶：c4"]), chat("d", other)]
    for expected in ("5 messages recorded", "0 messages recorded"):
        path = save(tmp_path / "c.json", chats)
        assert expected in run("import", "claude", path, "--session", "old").out
    texts = [r["text"] for r in stored(run, "old")]
    assert texts == [REMOVED, *one[1:3], REMOVED, "茶：c4", *other]
    run("purge", "old", "--message", "m6-m9", "--yes")
    assert "0 messages recorded" in run("import", "claude", path, "--session", "old").out


@pytest.mark.slow
def test_a_call_that_was_removed_does_not_come_back(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "c.json", [dumpd(message) for message in MESSAGES])
    run("import", "langchain", path, "--session", "old")
    run("purge", "old", "--message", "m1-m4", "--yes")
    assert "0 messages recorded" in run("import", "langchain", path, "--session", "old").out


@pytest.mark.slow
def test_a_replay_goes_on_behind_what_was_removed(run: Run, tmp_path: Path) -> None:
    said = [
        {"id": str(n), "role": ("user", "assistant")[n % 2], "text": f"茶：{n}"} for n in range(6)
    ]
    for count in (2, 6, 6):
        path = save(tmp_path / "talk.json", {"id": "r", "messages": said[:count]})
        run("replay", path, "--session", "old")
        run("purge", "old", "--message", "m1", "--yes")
    assert [r["text"] for r in stored(run, "old")] == [REMOVED, *(m["text"] for m in said[1:])]


@pytest.mark.parametrize("seconds", [1e300, 1e25, float("inf"), float("nan")])
def test_a_time_that_is_none(tmp_path: Path, seconds: float) -> None:
    """It is reported, and the message keeps its place."""
    path = tmp_path / "c.json"
    said = [node("a", "root", "user", "茶", time=1e9), node("b", "a", "user", "雨", time=seconds)]
    save(path, [chatgpt(*said)])
    read = read_one(path)
    assert [m.content for m in read.messages] == ["茶", "雨"]
    assert read.unread.counts == {"times that cannot be read": 1}
    assert repr(seconds) in read.unread.examples["times that cannot be read"]
    times = [m.additional_kwargs["time"] for m in list_messages(path)]
    assert times == ["2001-09-09T01:46:40+00:00"] * 2


def test_lines_end_where_json_ends_them(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    said = [{"type": "human", "content": "a\u2028b"}, {"type": "ai", "content": "c"}]
    text = "\n".join(json.dumps(m, ensure_ascii=False) for m in said)
    path.write_text(f"\ufeff{text}", "utf-8")
    assert [m.content for m in read_one(path).messages] == ["a\u2028b", "c"]


@pytest.mark.parametrize("begin", ["", "5\n"])
def test_what_is_nested_too_deep_is_said(tmp_path: Path, begin: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(begin + "[" * 100_000, "utf-8")
    with pytest.raises(NotAConversationError):
        list(load_conversations(path))


@pytest.mark.parametrize("data", [b"[" * 100_000, b'["\xe4"]', b"damaged"])
@pytest.mark.parametrize("packed", [True, False])
def test_what_cannot_be_read_is_said(run: Run, tmp_path: Path, data: bytes, packed: bool) -> None:
    path = tmp_path / "c"
    path.write_bytes(data)
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", data)
        path.write_bytes(path.read_bytes().replace(b"damaged", b"changed", 1))
    outcome = run("import", "chatgpt", str(path), "--session", "s")
    assert_one_line(outcome, "nothing was imported")


OURS = [
    {"id": "m1", "seq": 1, "role": "user", "text": "Hello", "time": "2026-03-02T09:14:40+01:00"},
    {
        "id": "m2",
        "seq": 2,
        "role": "assistant",
        "text": "",
        "time": "",
        "whole": MESSAGES[2].model_dump(),
    },
]
EXPORTS: list[Any] = [
    [MIXED],
    [CLAUDE],
    messages_to_dict(MESSAGES),
    [dumpd(m) for m in MESSAGES],
    OURS,
    [{"id": "c", "messages": [{"id": 1, "role": "user", "text": "a", "time": "1 May"}]}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
]
SAMPLES = Path(__file__).parents[1] / "recordings" / "samples"
EXPORTS += [json.loads(path.read_text("utf-8")) for path in sorted(SAMPLES.glob("*.json"))]
EXPORTS += [
    [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for path in sorted(SAMPLES.glob("*.jsonl"))
]
LEAVES = [None, True, -1, 1e400, 2**70, "", "x", "\ud800", "\u2028", "remove", "tool", "chat"]
TIMES = ["2026-13-45", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "去年"]
leaves = st.sampled_from([*LEAVES, *TIMES, [], [None], ["x"], {}, {"type": "text"}]).map(deepcopy)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """An export in which some things are others."""
    value = json.loads(json.dumps(draw(st.sampled_from(EXPORTS))))
    for _ in range(draw(st.integers(1, 4))):
        inner = value
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(inner[key], dict | list) or not draw(st.integers(0, 4)):
                inner[key] = draw(leaves)
                break
            inner = inner[key]
    return value


@pytest.mark.slow
@settings(deadline=None)
@given(damaged())
@example([{"type": "human", "content": "a", "additional_kwargs": {"time": {}}}])
@example([{"type": "remove", "id": "a"}])
@example([OURS[0], {**OURS[1], "whole": {"content": "", "type": "remove", "id": "m1"}}])
@example([{**OURS[1], "whole": {"content": "", "tool_calls": ["f"]}}])
@example([{**OURS[1], "whole": {"content": "", "tool_calls": [{"name": "f"}]}}])
def test_whatever_an_export_holds_is_read_or_reported(drawn: Any) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "c.jsonl", drawn if isinstance(drawn, list) else [drawn])
        for branches in (False, True):
            for conversation in read_exports([path], branches=branches):
                ids = [message.id for message in conversation.messages]
                assert len(set(ids)) == len(ids)
                assert {m.type for m in conversation.messages} <= {"human", "ai", "tool", "chat"}
            messages = list_messages(path, branches=branches)
            assert all(isinstance(m.additional_kwargs.get("time", ""), str) for m in messages)
        with suppress(NotAConversationError):
            list(load_conversations(path))


def test_messages_of_exports_pass_the_door(tmp_path: Path) -> None:
    """Each is kept in a form that a checkpoint holds, or reported alone."""
    call = {"name": "f", "args": {"n": 2**70, "t": "\ud800"}, "id": "c", "type": "tool_call"}
    said: list[Any] = [
        {"type": "human", "content": [{"type": ["x"]}, {"type": "text", "text": "Well?"}]},
        {"type": "ai", "content": "half \ud83d", "tool_calls": [call]},
    ]
    read = read_one(write(tmp_path / "c.jsonl", said))
    (message,) = read.messages
    assert isinstance(message, AIMessage)
    assert message.content == "half \ufffd"
    assert message.tool_calls[0]["args"] == {"n": str(2**70), "t": "\ufffd"}
    assert "has the type ['x']" in read.unread.examples["messages of another form"]


def test_a_time_may_be_a_number(tmp_path: Path) -> None:
    said = {"type": "human", "content": "a", "additional_kwargs": {"time": 1_700_000_000}}
    read = read_one(Path(save(tmp_path / "c.json", [said])))
    assert read.messages[0].additional_kwargs["time"] == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize(
    "value",
    [
        messages_to_dict(MESSAGES),
        [dumpd(m) for m in MESSAGES],
        [m.model_dump() for m in MESSAGES],
        {"messages": messages_to_dict(MESSAGES)},
        [messages_to_dict(MESSAGES)],
    ],
    ids=["dicts", "dumped", "models", "a state", "a list of lists"],
)
def test_langchain_messages_are_recorded(run: Run, tmp_path: Path, value: Any) -> None:
    outcome = run("import", "langchain", save(tmp_path / "m.json", value), "--session", "old")
    assert "4 messages recorded" in outcome.out
    assert "instructions and settings (1)" in outcome.out
    rows = stored(run, "old")
    assert [(r["role"], r["source"]) for r in rows] == [
        ("user", "h"),
        ("assistant", "a"),
        ("tool", "t"),
        ("assistant", "b"),
    ]
    assert rows[1]["whole"]["tool_calls"][0]["args"] == {"city": "Oslo"}


@pytest.mark.slow
def test_recorded_conversations_are_recorded_with_their_speakers(
    run: Run, tmp_path: Path, recording: Path
) -> None:
    outcome = run("import", "jsonl", str(recording), "--each")
    assert "1 conversation: 32 messages recorded in 1 session" in outcome.out
    rows = stored(run, "jsonl-talk")
    assert (rows[0]["speaker"], rows[0]["time"]) == ("Yue", "2026-03-01T09:00:00+01:00")


@pytest.mark.slow
def test_thousands_go_into_one_or_many_in_the_order_of_time(run: Run, tmp_path: Path) -> None:
    file = save(tmp_path / "c.json", [talk("b", 15, 2e9), talk("a", 2, 1e9), talk("c", 1, 3e9)])
    assert (
        "36 messages recorded in session all"
        in run("import", "chatgpt", file, "--session", "all").out
    )
    sources = [r["source"] for r in stored(run, "all")]
    assert sources == [f"{c}-{n}" for c, k in (("a", 4), ("b", 30), ("c", 2)) for n in range(k)]
    assert "36 messages recorded in 3 sessions" in run("import", "chatgpt", file, "--each").out
    assert [r["source"] for r in stored(run, "About a")] == sources[:4]


@pytest.mark.slow
def test_what_is_there_is_not_taken_in_again(run: Run, tmp_path: Path) -> None:
    file = save(tmp_path / "c.json", [talk("a", 3, 1e9)])
    run("import", "chatgpt", file, "--session", "all")
    run("chat", "all", stdin="茶：在中间\n")
    # Meanwhile one conversation went on, and another began.
    file = save(tmp_path / "c.json", [talk("a", 4, 1e9), talk("b", 1, 2e9)])
    outcome = run("import", "chatgpt", file, "--session", "all")
    assert "4 messages recorded in session all" in outcome.out
    assert "6 were there already" in outcome.out
    sources = [r["source"] for r in stored(run, "all")]
    assert len(sources) == len(set(sources)) == 12
    assert sources[8:] == ["a-6", "a-7", "b-0", "b-1"]
    assert "0 messages recorded" in run("import", "chatgpt", file, "--session", "all").out


@pytest.mark.slow
def test_files_whose_messages_have_the_same_ids_lose_nothing_to_each_other(
    run: Run, tmp_path: Path
) -> None:
    counted = {"one": ["Hello", "The boat is red", "It leaks"], "two": ["Hello", "The cat is grey"]}
    for month, texts in counted.items():
        messages = [HumanMessage(text) for text in texts]
        (tmp_path / month).mkdir()
        file = save(tmp_path / month / "history.json", messages_to_dict(messages))
        run("import", "langchain", file, "--session", "all")
    rows = stored(run, "all")
    assert [r["text"] for r in rows] == [*counted["one"], "The cat is grey"]
    assert len({r["source"] for r in rows}) == 4
    for month in counted:
        file = str(tmp_path / month / "history.json")
        assert "0 messages recorded" in run("import", "langchain", file, "--session", "all").out
    assert stored(run, "all") == rows


@pytest.mark.slow
def test_killed_on_the_way_it_goes_on(run: Run, tmp_path: Path) -> None:
    file, folder = save(tmp_path / "c.json", [talk("a", 400, 1e9)]), tmp_path / "sessions"
    program = Path(sys.executable).with_name("topicloom")
    command = [str(program), "--folder", str(folder), "import", "chatgpt", file, "--session", "all"]
    transcript, killed = folder / "all" / "transcript.jsonl", 0
    for rows in (30, 200, 430):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ))
        while process.poll() is None:
            written = transcript.read_bytes().count(b"\n") if transcript.exists() else 0
            if written > rows:
                process.send_signal(signal.SIGKILL)
                killed += 1
                break
            time.sleep(0.01)
        process.wait()
    assert killed
    run("import", "chatgpt", file, "--session", "all")
    assert [r["source"] for r in stored(run, "all")] == [f"a-{n}" for n in range(800)]
    assert "0 messages recorded" in run("import", "chatgpt", file, "--session", "all").out


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("{", "is not JSON"),
        ('[{"id": "1", "email": "ann@example.org"}]', "it has 'id', 'email'"),
        ("[1]", "it begins with 1"),
        ('{"seq": 1, "role": "robot"}', "line 1"),
        ("", "it is empty"),
        ("<html>\n<body>My chats</body></html>", "no conversation was found in it"),
        ("Dear diary, it rains.", "is not JSON"),
    ],
)
def test_a_file_of_which_nothing_is_imported(
    run: Run, tmp_path: Path, text: str, about: str
) -> None:
    file = tmp_path / "c.json"
    file.write_text(text, "utf-8")
    assert_one_line(run("import", str(file), "--session", "s"), "nothing was imported", about)
    outcome = run("import", str(file), "--session", "s", "--json")
    assert outcome.code == 2
    assert json.loads(outcome.out)["recorded"] == 0
    assert "there is no session" in run("transcript", "s").err


@pytest.mark.slow
def test_an_import_goes_into_a_session_that_its_first_file_names(run: Run, tmp_path: Path) -> None:
    files = [save(tmp_path / name, [MIXED]) for name in ("Tea, 2025.json", "c.json", "---.json")]
    assert "recorded in session Tea 2025" in run("import", *files).out
    assert stored(run, "Tea 2025")
    assert_one_line(run("import", files[2]), "'---' cannot name a session", "--session NAME")
    (packed := tmp_path / "boat.json.xz").write_bytes(lzma.compress(Path(files[0]).read_bytes()))
    assert "recorded in session boat" in run("import", str(packed)).out


def test_an_import_goes_into_one_session_or_into_many(run: Run, tmp_path: Path) -> None:
    file = save(tmp_path / "c.json", [MIXED])
    assert_one_line(run("import", "chatgpt", file, "--session", "s", "--each"), "--each")
    assert_one_line(run("import", "chatgpt", "nowhere.json", "--each"), "cannot be read")


def test_one_that_cannot_be_read_stops_no_other(run: Run, tmp_path: Path) -> None:
    broken = chatgpt(node("x", "root", "user", "hello"), id="broken")
    broken["mapping"]["x"]["message"]["author"] = None
    circle = chatgpt(
        node("x", "y", "user", "茶：一"), node("y", "x", "user", "茶：二"), id="circle"
    )
    file = save(tmp_path / "c.json", [broken, circle, chatgpt(id="none", current="root")])
    outcome = run("import", "chatgpt", file, "--session", "s")
    damage = "conversation 1 “About broken”, message x"
    assert f"not understood: messages of another form (1); the first: {damage}" in outcome.out
    assert "damaged" not in outcome.out
    assert [r["text"] for r in stored(run, "s")] == ["茶：一", "茶：二"]


TORN = '{"sender": "human", "text": '


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(f"[{CLAUDE_ONE},\n{CLAUDE_TWO},\n{TORN}", "line 3", id="torn"),
        pytest.param(f"[{CLAUDE_ONE}, {CLAUDE_TWO}, 7]", "conversation 3, it is of", id="none"),
        pytest.param(
            f"[{CLAUDE_ONE}, {CLAUDE_TWO.replace('sender', 'x', 1)}]",
            "conversation 2 “two”, message c, it has no 'sender'",
            id="message",
        ),
        pytest.param(f"{LINE_A}\n{TORN}\n{LINE_B}", "message 2, line 2", id="line"),
        pytest.param(f'[{LINE_A}, {{"type": "x"}}, {LINE_B}]', "message 2, it", id="type"),
        pytest.param(f"{OWN_A}\n{TORN}\n{OWN_B}", "line 2 is not JSON", id="own"),
        pytest.param(f"{OWN_A}\n7\n{OWN_B}", "line 2, it is of", id="own row"),
        pytest.param(f"{ROLE_A}\n{TORN}\n{ROLE_B}", "line 2 is not JSON", id="roles"),
        pytest.param(
            f'{ROLE_A}\n{{"role": "x"}}\n{ROLE_B}', "message 2, its role is 'x'", id="role"
        ),
        pytest.param(f"{TALK_A}\n{TORN}\n{TALK_B}", "line 2 is not JSON", id="recordings"),
    ],
)
def test_what_is_not_understood_is_named_and_the_rest_is_taken_in(
    run: Run, tmp_path: Path, text: str, place: str
) -> None:
    file = tmp_path / "c.json"
    file.write_text(text, "utf-8")
    outcome = run("import", str(file), "--session", "s", "--json")
    (report,) = map(json.loads, outcome.out.splitlines())
    (row,) = report["not_understood"]
    assert row["count"] == 1
    assert place in row["example"]
    assert "Error" not in row["example"]
    assert [row["text"] for row in stored(run, "s")] == ["tea", "rain"][: report["recorded"]]
    assert report["recorded"] == (1 if "message c" in place else 2)
    again = run("import", str(file), "--session", "s", "--json")
    assert json.loads(again.out)["recorded"] == 0


@pytest.mark.slow
def test_what_is_put_right_is_all_that_is_taken_in_then(run: Run, tmp_path: Path) -> None:
    said = [{"type": "human", "content": text} for text in ("tea", "rain", "wood")]
    file = save(tmp_path / "c.json", [said[0], {"type": "x"}, said[2]])
    run("import", "langchain", file, "--session", "s")
    save(tmp_path / "c.json", said)
    assert "1 message recorded" in run("import", "langchain", file, "--session", "s").out
    assert [row["text"] for row in stored(run, "s")] == ["tea", "wood", "rain"]


def test_a_branch_that_ends_nowhere_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    save(file, [chatgpt(node("x", "root", "user", "tea", time=5), id="a", current="gone")])
    assert [m.content for m in read_one(file).messages] == ["tea"]


@pytest.mark.slow
def test_lines_of_json_are_recorded(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "c.jsonl", [talk("a", 1, 1e9), talk("b", 1, 2e9)])
    assert "4 messages recorded" in run("import", "chatgpt", str(file), "--session", "s").out
