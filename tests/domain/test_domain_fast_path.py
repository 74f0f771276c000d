"""A clear edit takes one model call at most, and touches no index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from domains import (
    CONFIG,
    SET_3,
    SWORD,
    ScriptedPlanner,
    count_of,
    edit_plan,
    editing,
    reply_of,
    say,
    the_document,
)
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Call, Reply
from openai_server import OpenAIServer
from sessions import (
    chatter,
    past,
    record,
    tell,
)

from topicloom import PLANNER, Domain, FileStorage, Settings, build_session_graph
from topicloom.domain.wiring import DomainRuntime
from topicloom.graph.deps import make_deps
from topicloom.graph.parts import GraphParts
from topicloom.graph.session import wire_graph
from topicloom.hosting import Graph
from topicloom.nodes.deps import Deps
from topicloom.nodes.workspace import Workspaces
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_search import Hits
from topicloom.storage.log import SessionLog
from topicloom.testing import (
    Clock,
    NameRouter,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
)
from topicloom.topics.session_index import SessionIndex


def deps_of(settings: Settings, **options: Any) -> Deps:
    """The collaborators of a graph with a domain."""
    return make_deps(GraphParts(settings=settings, clock=Clock(), domain=Domain(), **options))


class CountingIndex(SessionIndex):
    """An index that counts how often it is touched."""

    def __init__(self, log: SessionLog, touched: list[str]) -> None:
        super().__init__(HashingEmbedder(64), log, 500)
        self._touched = touched

    def update(self, *args: Any) -> None:
        self._touched.append("update")
        super().update(*args)

    def search(self, *args: Any, **kwargs: Any) -> Hits:
        self._touched.append("search")
        return super().search(*args, **kwargs)

    def affinities(self, *args: Any) -> Any:
        self._touched.append("affinities")
        return super().affinities(*args)


class Fast:
    """A graph whose parts all count what they are asked."""

    def __init__(self, folder: Path, planner: Any, *script: Any) -> None:
        self.responder, self.reader = ScriptedResponder(*script), SteadyReader()
        self.splitter, self.router = TaggedSplitter(), NameRouter({})
        roles = fake_roles(
            self.responder, reader=self.reader, splitter=self.splitter, router=self.router
        )
        deps = deps_of(
            Settings(folder=folder, fsync=False, window=8_000, recall_tokens=500),
            roles=roles.replace(PLANNER, planner),
        )
        self.touched: list[str] = []
        workspaces = Workspaces(
            FileStorage(folder, fsync=False),
            lambda log: CountingIndex(log, self.touched),
        )
        deps = replace(deps, workspaces=workspaces)
        self.graph: Graph = wire_graph(deps, DomainRuntime.prepare(Domain(), deps)).compile(
            checkpointer=InMemorySaver()
        )
        record(self.graph, CONFIG, *past("茶", "雨"))
        tell(self.graph, CONFIG, chatter("山", 1), keep=0)
        assert self.touched, "there are topics, and the index is at work"
        self.forget()

    def forget(self) -> None:
        self.touched.clear()
        self.responder.requests.clear()
        self.reader.requests.clear()
        self.splitter.requests.clear()

    @property
    def asked(self) -> dict[str, int]:
        return {
            "index": len(self.touched),
            "reader": len(self.reader.requests),
            "router": len(self.router.requests),
            "splitter": len(self.splitter.requests),
            "responder": len(self.responder.requests),
        }


NOBODY = {"index": 0, "reader": 0, "router": 0, "splitter": 0, "responder": 0}


class TestTheFastPath:
    """Exactly one model call, of whoever knows the edit, and no index is touched."""

    @pytest.mark.slow
    def test_a_planner_that_gives_the_edits_is_the_one(self, tmp_path: Path) -> None:
        planner = ScriptedPlanner()
        fast = Fast(tmp_path, planner)
        planner.requests.clear()
        planner.script.append(edit_plan(SET_3, reply="Three."))
        assert count_of(say(fast.graph, "Three swords", the_document())) == 3
        assert fast.asked == NOBODY
        assert len(planner.requests) == 1

    @pytest.mark.slow
    def test_without_edits_the_main_model_is_the_one(self, tmp_path: Path) -> None:
        planner = ScriptedPlanner()
        fast = Fast(tmp_path, planner)
        planner.script.append(edit_plan())
        fast.responder.script.append(editing(SET_3))
        state = say(fast.graph, "Three swords", the_document())
        assert count_of(state) == 3
        assert reply_of(state) == "好了，Iron Sword：count 现在是 3。"
        assert fast.asked == NOBODY | {"responder": 1}
        text = str(fast.responder.requests[0].messages[-1].content)
        assert '<context_layer type="deterministic">' in text
        assert [m.type for m in state["messages"][-2:]] == ["human", "ai"], "the call is gone"

    @pytest.mark.slow
    def test_over_http_it_is_one_request(self, openai_server: OpenAIServer, tmp_path: Path) -> None:
        edits = f'[["SET", "{SWORD}", 3]]'
        openai_server.then(
            Reply(
                f"<turn_plan><kind>state_edit</kind><edits>{edits}</edits>"
                "<reply>Three swords now.</reply></turn_plan>"
            )
        )
        state = say(over_http(openai_server, tmp_path), "Three swords please", the_document())
        assert (reply_of(state), count_of(state)) == ("Three swords now.", 3)
        (request,) = openai_server.requests
        assert "item_sword_01" in str(request["messages"])

    @pytest.mark.slow
    def test_over_http_with_a_planner_of_ones_own(
        self, openai_server: OpenAIServer, tmp_path: Path
    ) -> None:
        """The planner is sure that it is an edit, and not of which: the main model is asked."""
        openai_server.then(Reply("", tool_calls=[Call("edit_state", {"edits": [list(SET_3)]})]))
        graph = over_http(openai_server, tmp_path, planner=ScriptedPlanner([edit_plan()]))
        state = say(graph, "Three swords please", the_document())
        assert (reply_of(state), count_of(state)) == ("Done: Iron Sword: count is now 3.", 3)
        (request,) = openai_server.requests
        assert [t["function"]["name"] for t in request["tools"]] == ["edit_state"]


def over_http(server: OpenAIServer, folder: Path, planner: Any = None) -> Graph:
    settings = Settings(folder=folder, fsync=False, window=8_000, max_retries=0)
    settings = settings.model_copy(update={"base_url": server.base_url, "api_key": "k"})
    if planner is None:
        graph = build_session_graph(model="openai:strong", settings=settings, domain=Domain())
        return graph.compile(checkpointer=InMemorySaver())
    deps = deps_of(settings, model="openai:strong")
    deps = replace(deps, roles=deps.roles.replace(PLANNER, planner))
    return wire_graph(deps, DomainRuntime.prepare(Domain(), deps)).compile(
        checkpointer=InMemorySaver()
    )
