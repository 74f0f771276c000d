"""Whatever is edited, in any order: what is superseded stands in no prompt, all else is kept."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from sessions import chatter, check_kept, kept, open_graph, thread

from topicloom import TurnOptions, get_session
from topicloom.testing import ScriptedResponder, SteadyReader, TaggedSplitter, fake_roles


class Talk:
    """A conversation in which every message has a mark of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draw = Random(seed)
        self.heard: list[Any] = [
            ScriptedResponder(otherwise=lambda _: f"知道了 {self.mark()}"),
            SteadyReader(),
            TaggedSplitter(),
        ]
        responder, reader, splitter = self.heard
        roles = fake_roles(responder, reader=reader, splitter=splitter)
        self.folder, self.marks = folder, 0
        self.graph = open_graph(folder, roles, visible_messages=self.draw.choice([1, 4, 8]))
        self.gone: set[str] = set()

    def mark(self) -> str:
        self.marks += 1
        return f"X{self.marks}X"

    def channel(self) -> list[BaseMessage]:
        return list(self.graph.get_state(thread()).values["messages"])

    def send(self, *messages: BaseMessage) -> None:
        for role in self.heard:
            role.requests.clear()
        keep = self.draw.choice([None, None, 0, 2])
        given: Any = {"messages": list(messages)}
        self.graph.invoke(given, thread(), context=TurnOptions(keep_messages=keep))

    def words(self) -> HumanMessage:
        number = self.marks
        text = f"{chatter(self.draw.choice('茶山雨'), number, characters=30)} {self.mark()}"
        return HumanMessage(text, id=f"u{number}")

    def supersede(self, *texts: str) -> None:
        self.gone |= {part for text in texts for part in text.split() if part.startswith("X")}

    def step(self) -> None:
        messages = self.channel()
        kind = self.draw.choice(["talk", "talk", "remove", "change", "anew", "all", "again"])
        if kind == "remove":
            some = self.draw.choice(messages)
            self.supersede(some.text)
            if self.draw.random() < 0.5:
                self.graph.update_state(thread(), {"messages": [RemoveMessage(id=some.id or "")]})
                self.send(self.words())
            else:
                self.send(RemoveMessage(id=some.id or ""), self.words())
        elif kind == "change" and (replies := [m for m in messages if isinstance(m, AIMessage)]):
            reply = self.draw.choice(replies)
            self.supersede(reply.text)
            changed = AIMessage(f"改过 {self.mark()}", id=reply.id)
            self.graph.update_state(thread(), {"messages": [changed]})
            self.send(self.words())
        elif kind == "anew" and (asked := [m for m in messages if isinstance(m, HumanMessage)]):
            place = messages.index(self.draw.choice(asked))
            self.supersede(*(m.text for m in messages[place:]))
            self.send(self.words().model_copy(update={"id": messages[place].id}))
        elif kind == "all" and self.draw.random() < 0.3:
            self.supersede(*(m.text for m in self.view()))
            self.send(RemoveMessage(id=REMOVE_ALL_MESSAGES), self.words())
        elif kind == "again":
            said = self.view()
            left = [m for m in said if self.draw.random() < 0.8]
            self.supersede(*(m.text for m in said if m not in left))
            self.send(RemoveMessage(id=REMOVE_ALL_MESSAGES), *left, self.words())
        else:
            self.send(self.words())

    def view(self) -> list[BaseMessage]:
        session = get_session(self.graph, thread())
        return [m.message for m in kept(self.folder, session).messages(session)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_superseded_text_stands_in_any_prompt(tmp_path: Path, seed: int) -> None:
    talk = Talk(tmp_path, seed)
    talk.send(talk.words())
    for _ in range(12):
        talk.step()
        heard = repr([role.requests for role in talk.heard])
        assert [mark for mark in talk.gone if mark in heard] == []
        session = get_session(talk.graph, thread())
        store = kept(tmp_path, session)
        check_kept(store, session)
        said = " ".join(m.text for m in store.messages(session)).split()
        marks = [f"X{n}X" for n in range(1, talk.marks + 1)]
        assert {m for m in marks if m in said} == set(marks) - talk.gone
        files = "".join(p.read_text("utf-8") for p in tmp_path.rglob("*.jsonl"))
        assert [mark for mark in marks if mark not in files] == []
