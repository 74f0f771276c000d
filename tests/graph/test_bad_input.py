"""Bad input gets a clear error or is carried through whole; the session works afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from sessions import (
    check_kept,
    kept,
    last_receipt,
    open_after,
    open_graph,
    past,
    prompt_of,
    record,
    tell,
    thread,
    transcript_of,
)

from topicloom import (
    RESPONDER,
    ConfigurationError,
    FileStorage,
    InputError,
    MissingThreadError,
    NoNewMessageError,
    Settings,
    StorageUnavailableError,
    StoredMessage,
    TopicLoomError,
    UnknownModelError,
    build_session_graph,
    get_session,
)
from topicloom.hosting import Graph
from topicloom.roles.responder import ChatResponder
from topicloom.testing import (
    ScriptedResponder,
    fake_roles,
    make_tool_call,
    make_topic_search,
)

DAY = "-- 2026-03-02 (Monday) --"
CONFIG = thread()
REPLY = "All right, noted."
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
OTHER_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return open_graph(tmp_path)


def f(x: str) -> str:
    """Give it back."""
    return x


class ToolModel(FakeMessagesListChatModel):
    """Says what it is given, whatever tools there are."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def send(graph: Graph, *messages: Any) -> None:
    graph.invoke({"messages": list(messages)}, CONFIG)


def said(folder: Path, graph: Graph) -> list[str]:
    return [r.text for r in checked(folder, graph)]


def checked(folder: Path, graph: Graph) -> list[StoredMessage]:
    session = get_session(graph, CONFIG)
    return check_kept(kept(folder, session), session)


class TestEmpty:
    @pytest.mark.parametrize(
        "content",
        [
            "",
            "   ",
            "\n\t\u3000",
            [],
            [{"type": "text", "text": ""}],
            [{"type": "text", "text": " "}],
            [""],
        ],
    )
    def test_a_message_that_says_nothing(self, tmp_path: Path, graph: Graph, content: Any) -> None:
        with pytest.raises(InputError, match="empty"):
            send(graph, HumanMessage(content))
        send(graph, HumanMessage("Hello"))
        assert said(tmp_path, graph) == ["Hello", REPLY], "what was refused is no conversation"

    @pytest.mark.parametrize(
        "message", [("user", None), {"role": "user", "content": None}, {"role": "user"}, None]
    )
    def test_an_empty_message_is_refused_and_the_next_one_taken(
        self, tmp_path: Path, graph: Graph, message: Any
    ) -> None:
        with pytest.raises((ValueError, NotImplementedError)) as error:
            send(graph, message)
        assert str(error.value)
        send(graph, HumanMessage("Hello"))
        assert said(tmp_path, graph) == ["Hello", REPLY]

    def test_no_message_at_all(self, tmp_path: Path, graph: Graph) -> None:
        with pytest.raises(NoNewMessageError):
            send(graph)
        send(graph, HumanMessage("Hello"))
        with pytest.raises(NoNewMessageError):
            send(graph)
        send(graph, HumanMessage("Again"))
        assert said(tmp_path, graph) == ["Hello", REPLY, "Again", REPLY]

    def test_an_empty_message_among_others_is_left_out(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage(""), HumanMessage("Hello"))
        assert said(tmp_path, graph) == ["Hello", REPLY]

    async def test_on_the_event_loop(self, tmp_path: Path, graph: Graph) -> None:
        with pytest.raises(InputError, match="empty"):
            await graph.ainvoke({"messages": [HumanMessage(" ")]}, CONFIG)
        await graph.ainvoke({"messages": [HumanMessage("Hello")]}, CONFIG)
        assert said(tmp_path, graph) == ["Hello", REPLY]


class TestContentBlocks:
    def test_images_alone_are_carried_through_whole(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, HumanMessage([IMAGE], id="a"))
        tell(graph, CONFIG, "What was it?")
        for request in responder.requests:
            assert request.messages[1].content == [{"type": "text", "text": DAY}, IMAGE]
        assert checked(tmp_path, graph)[0].message.content == [IMAGE]

    @pytest.mark.slow
    def test_images_survive_a_split(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        content: list[str | dict[Any, Any]] = [{"type": "text", "text": "茶：看这个"}, IMAGE]
        send(graph, HumanMessage(content))
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, "What was in the picture?", keep=0)
        assert get_session(graph, CONFIG).tail > 1
        assert checked(tmp_path, graph)[0].message.content == content

    @pytest.mark.parametrize(
        "block",
        [
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "something-new", "payload": [1, None, {"a": "b"}]},
            {},
        ],
    )
    def test_blocks_nobody_knows(self, tmp_path: Path, graph: Graph, block: dict[str, Any]) -> None:
        send(graph, HumanMessage([block]))
        tell(graph, CONFIG, "And?", keep=0)
        assert checked(tmp_path, graph)[0].message.content == [block]

    @pytest.mark.slow
    def test_lone_surrogates_anywhere(self, tmp_path: Path) -> None:
        """A model may cut a character in two in its JSON, and so may a client in a name."""
        responder = ScriptedResponder(
            "Hi", make_topic_search("half \ud83d"), make_tool_call("f", {"x": "\ud83d"}), "Done"
        )
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(responder), tools=[f])
        tell(graph, CONFIG, "Hello", keep=0)
        send(graph, HumanMessage("Call it", name="half \ud83d", id="\ud83d"))
        tell(graph, CONFIG, "And?")
        session = get_session(graph, CONFIG)
        store = kept(tmp_path, session)
        (turn,) = (r for r in store.receipts(session) if r.searches)
        assert turn.searches[0].query == "half \ufffd"
        for stored in [*checked(tmp_path, graph), *store.receipts(session)]:
            assert stored.model_dump_json()
        for message in responder.requests[-1].messages:
            assert message.model_dump_json()

    def test_a_lone_surrogate(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage("half \ud83d of it"))
        tell(graph, CONFIG, "Hello")
        # No checkpoint holds it and no provider takes it: it is kept as it can be kept at once.
        assert said(tmp_path, graph) == ["half \ufffd of it", REPLY, "Hello", REPLY]


class TestIds:
    def test_the_same_message_again_is_not_new(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage("Hello", id="a"))
        with pytest.raises(NoNewMessageError, match="id"):
            send(graph, HumanMessage("Hello", id="a"))
        tell(graph, CONFIG, "And now?")
        assert said(tmp_path, graph) == ["Hello", REPLY, "And now?", REPLY]

    @pytest.mark.slow
    def test_the_whole_history_may_be_passed_every_time(self, tmp_path: Path, graph: Graph) -> None:
        history: list[AnyMessage] = []
        for n in range(20):
            history.append(HumanMessage(f"Say {n}", id=f"id-{n}"))
            state = graph.invoke({"messages": history}, CONFIG)
            history.append(state["messages"][-1])
        texts = said(tmp_path, graph)
        assert texts[::2] == [f"Say {n}" for n in range(20)]
        assert len(texts) == 40

    def test_what_was_said_under_the_same_id_is_kept(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage("First", id="a"))
        send(graph, HumanMessage("Second", id="a"))
        send(graph, HumanMessage("Third", id="b"))
        assert said(tmp_path, graph) == ["First", REPLY, "Second", REPLY, "Third", REPLY]

    def test_what_is_sent_ends_in_the_message_to_answer(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, HumanMessage("First", id="a"))
        send(graph, HumanMessage("Second", id="a"))
        _, *shown = [m.content for m in responder.requests[-1].messages]
        assert shown == [f"{DAY}\nSecond"], "an edit: what it superseded is out of view"

    def test_the_same_id_with_another_picture_is_new(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage([IMAGE], id="a"))
        send(graph, HumanMessage([OTHER_IMAGE], id="a"))
        contents = [r.message.content for r in checked(tmp_path, graph)]
        assert contents == [[IMAGE], REPLY, [OTHER_IMAGE], REPLY]

    def test_the_same_words_without_an_id_are_new(self, tmp_path: Path, graph: Graph) -> None:
        tell(graph, CONFIG, "Hello", "Hello")
        assert said(tmp_path, graph) == ["Hello", REPLY, "Hello", REPLY]

    def test_one_id_twice_in_one_input(self, tmp_path: Path, graph: Graph) -> None:
        send(graph, HumanMessage("One", id="a"), HumanMessage("Two", id="a"))
        assert said(tmp_path, graph) == ["Two", REPLY], "as in any LangGraph channel"

    def test_replies_of_one_id_are_messages_of_their_own(self, tmp_path: Path) -> None:
        """LangChain's own fake models give one message again and again."""
        call = AIMessage("", tool_calls=[ToolCall(name="f", args={"x": "1"}, id="c")], id="r")
        said_by_it = [call, AIMessage("One", id="r"), AIMessage("One", id="r")]
        model = ToolModel(responses=[*said_by_it, AIMessage("Two", id="r")])
        roles = fake_roles().replace(RESPONDER, ChatResponder(model))
        graph = open_graph(tmp_path, roles, tools=[f])
        for text in ("a", "b", "c"):
            (*_, reply) = tell(graph, {**CONFIG, "recursion_limit": 40}, text)
            assert isinstance(reply, AIMessage)
        assert said(tmp_path, graph) == ["a", "", "1", "One", "b", "One", "c", "Two"]
        ids = [m.source for m in checked(tmp_path, graph)]
        assert len(set(ids)) == len(ids)


class TestThread:
    def test_a_turn_without_a_thread(self, tmp_path: Path) -> None:
        settings = Settings(folder=tmp_path, window=2_000)
        graph = build_session_graph(settings=settings, roles=fake_roles()).compile()
        with pytest.raises(MissingThreadError, match="thread_id"):
            graph.invoke({"messages": [HumanMessage("Hello")]})
        assert list(tmp_path.iterdir()) == []

    def test_a_name_with_half_of_a_character(self, tmp_path: Path, graph: Graph) -> None:
        """A checkpoint has it with a question mark: the second turn would not know the first."""
        with pytest.raises(InputError, match=r"thread_id 'a\\ud83d' has half of a character"):
            tell(graph, thread("a\ud83d"), "Hello")
        assert list(tmp_path.iterdir()) == []

    def test_with_a_checkpointer_langgraph_itself_asks_for_one(self, graph: Graph) -> None:
        with pytest.raises(ValueError, match="thread_id"):
            graph.invoke({"messages": [HumanMessage("Hello")]})

    def test_an_empty_thread_id(self, graph: Graph) -> None:
        with pytest.raises((TopicLoomError, ValueError)):
            graph.invoke({"messages": [HumanMessage("Hello")]}, thread(""))

    @pytest.mark.parametrize("name", [7, 1.5])
    def test_a_thread_id_that_is_no_text(self, tmp_path: Path, graph: Graph, name: Any) -> None:
        config = thread(name)
        tell(graph, config, "Hello", "And now?")
        assert len(transcript_of(tmp_path, graph, config)) == 4


class TestModels:
    @pytest.mark.parametrize("model", ["gpt-5", "nobody:nothing", "openai:", ":x", "  "])
    def test_a_model_nobody_can_open(self, tmp_path: Path, model: str) -> None:
        with pytest.raises(ConfigurationError) as error:
            build_session_graph(settings=Settings(folder=tmp_path, model=model))
        assert repr(model.strip()) in repr(str(error.value)) or model in str(error.value)

    def test_it_says_what_would_do(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownModelError, match="openai:"):
            build_session_graph(settings=Settings(folder=tmp_path, model="gpt-5"))

    def test_a_tool_of_our_name(self, tmp_path: Path) -> None:
        def activate_topic(query: str) -> str:
            """Mine."""
            return query

        with pytest.raises(ConfigurationError, match="activate_topic"):
            open_graph(tmp_path, tools=[activate_topic])

    @pytest.mark.parametrize(
        "settings",
        [{"window": 10}, {"recall_share": 1.5}, {"layout": "heap"}, {"activation": {"floor": 99}}],
    )
    def test_settings_out_of_range(self, tmp_path: Path, settings: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(settings))):
            open_graph(tmp_path, **settings)


class TestFolders:
    def test_the_folder_is_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "sessions"
        file.write_text("I am a file")
        with pytest.raises(StorageUnavailableError, match="not a folder"):
            tell(open_graph(file), CONFIG, "Hello")
        assert file.read_text() == "I am a file"

    def test_the_folder_s_parent_is_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "sessions"
        file.write_text("I am a file")
        graph = open_graph(file / "here")
        with pytest.raises(StorageUnavailableError, match="storage"):
            tell(graph, CONFIG, "Hello")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_may_not_be_written_to(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(StorageUnavailableError, match="write"):
                tell(open_graph(tmp_path), CONFIG, "Hello")
        finally:
            tmp_path.chmod(0o700)

    def test_a_folder_on_a_read_only_system(self) -> None:
        """Works for root, too: nobody may make folders there."""
        if not Path("/proc/self").exists():
            pytest.skip("there is no /proc")
        graph = open_graph(Path("/proc/topicloom"))
        with pytest.raises(StorageUnavailableError, match="storage"):
            tell(graph, CONFIG, "Hello")

    def test_storage_that_appears_later_is_used(self, tmp_path: Path) -> None:
        file = tmp_path / "sessions"
        file.write_text("I am a file")
        graph = open_graph(file / "here")
        with pytest.raises(StorageUnavailableError):
            tell(graph, CONFIG, "Hello")
        file.unlink()
        tell(graph, CONFIG, "Hello again")
        assert said(file / "here", graph) == ["Hello", "Hello again", REPLY]


class TestDamage:
    @staticmethod
    def files(folder: Path) -> list[Path]:
        return sorted(folder.rglob("*.jsonl"))

    @pytest.mark.slow
    def test_half_a_line_is_set_aside_and_reported(self, tmp_path: Path) -> None:
        saver = InMemorySaver()
        graph = open_graph(tmp_path, checkpointer=saver)
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, "Hello", keep=0)
        before = said(tmp_path, graph)
        for file in self.files(tmp_path):
            with file.open("ab") as out:
                out.write(b'{"id":"m99","seq":99,"role":"user","text":"half a li')
        graph = open_graph(tmp_path, checkpointer=saver)
        tell(graph, CONFIG, "And now?")
        assert said(tmp_path, graph) == [*before, "And now?", REPLY]
        tell(graph, CONFIG, "And then?")
        store = kept(tmp_path, get_session(graph, CONFIG))
        events = [e for r in store.receipts(get_session(graph, CONFIG))[2:] for e in r.events]
        reported = [e for e in events if "transcript.jsonl" in e]
        assert len(reported) == 1, "once, in the receipt of the turn that found it"
        assert list(tmp_path.rglob("*.torn"))

    def test_a_line_in_the_middle_that_is_no_entry(self, tmp_path: Path) -> None:
        saver = InMemorySaver()
        graph = open_graph(tmp_path, checkpointer=saver)
        tell(graph, CONFIG, "One", "Two")
        file = next(f for f in self.files(tmp_path) if f.name == "transcript.jsonl")
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join([lines[0], b"what is this?\n", *lines[1:]]))
        graph = open_graph(tmp_path, checkpointer=saver)
        tell(graph, CONFIG, "Three")
        assert said(tmp_path, graph) == ["One", REPLY, "Two", REPLY, "Three", REPLY]

    def test_a_line_that_was_changed_by_hand_is_an_error_that_names_it(
        self, tmp_path: Path
    ) -> None:
        saver = InMemorySaver()
        tell(open_graph(tmp_path, checkpointer=saver), CONFIG, "One", "Two")
        file = next(f for f in self.files(tmp_path) if f.name == "transcript.jsonl")
        file.write_text(file.read_text("utf-8").replace("One", "Won"), "utf-8")
        with pytest.raises(TopicLoomError, match=r"transcript\.jsonl, line 1"):
            tell(open_graph(tmp_path, checkpointer=saver), CONFIG, "Three")

    def test_files_that_are_gone_are_an_error_that_says_so(self, tmp_path: Path) -> None:
        saver = InMemorySaver()
        tell(open_graph(tmp_path / "a", checkpointer=saver), CONFIG, "One")
        with pytest.raises(TopicLoomError, match="other storage"):
            tell(open_graph(tmp_path / "b", checkpointer=saver), CONFIG, "Two")

    def test_stored_lines_are_json(self, tmp_path: Path, graph: Graph) -> None:
        tell(graph, CONFIG, "Hello 你好 \ud800")
        for file in self.files(tmp_path):
            for line in file.read_bytes().splitlines():
                assert isinstance(json.loads(line), dict)


class TestKinds:
    def test_a_system_message_is_part_of_the_conversation(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, SystemMessage("Answer in rhyme."), HumanMessage("Hello"))
        assert [r.role for r in checked(tmp_path, graph)] == ["system", "user", "assistant"]
        assert "Answer in rhyme." in prompt_of(responder.requests[0])

    def test_a_system_message_alone_is_only_kept(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, SystemMessage("Answer in rhyme."))
        assert responder.requests == []
        assert said(tmp_path, graph) == ["Answer in rhyme."]

    def test_an_input_that_ends_in_a_reply_is_only_kept(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, HumanMessage("Hi"), AIMessage("Hello!"))
        assert responder.requests == []
        tell(graph, CONFIG, "How are you?")
        assert said(tmp_path, graph) == ["Hi", "Hello!", "How are you?", REPLY]

    def test_a_tool_result_that_nobody_asked_for(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, ToolMessage("a fox", tool_call_id="c"))
        tell(graph, CONFIG, "What was it?")
        assert said(tmp_path, graph) == ["a fox", "What was it?", REPLY]
        assert "a fox" in prompt_of(responder.requests[0])
        assert all(m.type != "tool" for m in responder.requests[0].messages)

    @pytest.mark.parametrize(
        "message",
        [FunctionMessage(content="21", name="f"), ChatMessage(content="hm", role="critic")],
    )
    def test_older_kinds_of_messages(
        self, tmp_path: Path, graph: Graph, message: AnyMessage
    ) -> None:
        send(graph, message, HumanMessage("Hello"))
        tell(graph, CONFIG, "And now?", keep=0)
        first = checked(tmp_path, graph)[0].message
        assert type(first) is type(message)
        assert first.content == message.content

    def test_an_artifact_that_is_not_json(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        call = {"name": "draw", "args": {}, "id": "c", "type": "tool_call"}
        send(
            graph,
            HumanMessage("Draw"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("done", tool_call_id="c", artifact=b"\x89PNG\xff"),
        )
        tell(graph, CONFIG, "Thanks")
        assert len(checked(tmp_path, graph)) == 6

    def test_a_name_stays_with_its_message(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        send(graph, HumanMessage("Hello", name="Ann"))
        assert checked(tmp_path, graph)[0].speaker == "Ann"
        assert last_receipt(tmp_path, graph, CONFIG).user == "m1"

    @pytest.mark.parametrize("time", ["", "yesterday", "2026-99-99", None, 12, "2023-05-01"])
    def test_a_time_of_any_form(self, tmp_path: Path, graph: Graph, time: Any) -> None:
        send(graph, HumanMessage("茶：一", additional_kwargs={"time": time}))
        tell(graph, CONFIG, "Hello", keep=0)
        assert said(tmp_path, graph)[0] == "茶：一"

    def test_text_of_every_plane(self, tmp_path: Path, graph: Graph) -> None:
        text = "\x00\x07\x1b[31m\r\n\u2028\u202e\ufeff\uffff🧵" + "e\u0301" * 3
        tell(graph, CONFIG, text)
        tell(graph, CONFIG, "And?", keep=0)
        assert said(tmp_path, graph)[0] == text


def test_two_folders_never_mix(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tell(open_graph(tmp_path / name), CONFIG, f"Hello from {name}")
    for name in ("a", "b"):
        storage = FileStorage(tmp_path / name)
        assert storage.sessions() == ["s"]
        text = (tmp_path / name / "s" / "transcript.jsonl").read_text("utf-8")
        assert f"Hello from {name}" in text
        assert text.count("Hello from") == 1
