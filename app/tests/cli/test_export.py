"""`topicloom export`: what was said, to read or to take elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, run
from examples import FEW, fresh
from hypothesis import given, strategies as st
from importing import begin_import, read_one
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import open_graph, record, thread, transcript_of

from topicloom import StoredMessage
from topicloom_app.cli._pages import write_html, write_lines, write_markdown

__all__ = ["run"]

TEXTS = st.text(min_size=1, max_size=40).filter(str.strip)
NAMES = st.none() | st.text("ab 张", min_size=1, max_size=5).filter(str.strip)
TIMES = st.sampled_from([{}, {"time": "2024-02-29T23:59:59+08:00"}, {"time": "2025-01-01"}])


@st.composite
def rounds(draw: st.DrawFn) -> list[BaseMessage]:
    """A round: words or blocks of a user, a tool maybe, and a reply."""
    blocks = [
        {"type": "text", "text": draw(TEXTS)},
        {"type": "image_url", "image_url": {"url": "u"}},
    ]
    content: Any = draw(TEXTS | st.just(blocks))
    said: list[BaseMessage] = [
        HumanMessage(content, name=draw(NAMES), additional_kwargs=draw(TIMES))
    ]
    if draw(st.booleans()):
        call = {"name": "look", "args": {"at": draw(TEXTS)}, "id": "c"}
        said += [AIMessage("", tool_calls=[call], additional_kwargs=draw(TIMES))]
        said += [ToolMessage(draw(st.text(max_size=9)), tool_call_id="c")]
    return [*said, AIMessage(draw(TEXTS), additional_kwargs=draw(TIMES))]


def facts(messages: list[StoredMessage]) -> list[dict[str, Any]]:
    """All of messages but what the session makes of them."""
    return [m.model_dump(exclude={"opens", "query"}) for m in messages]


@pytest.mark.slow
@FEW
@given(st.lists(rounds(), min_size=1, max_size=8))
def test_lines_become_the_same_messages_again(
    tmp_path: Path, drawn: list[list[BaseMessage]]
) -> None:
    folder = fresh(tmp_path)
    graph = open_graph(folder)
    for said in drawn:
        record(graph, thread(), *said)
    messages = transcript_of(folder, graph, thread())
    lines = folder / "export.jsonl"
    lines.write_text(write_lines("s", messages), "utf-8")
    conversation = read_one(lines)
    assert not conversation.skipped
    assert not conversation.unread.counts
    again = open_graph(folder / "again", checkpointer=InMemorySaver())
    assert sum(begin_import(again, thread(), lines)) == len(messages)
    assert facts(transcript_of(folder / "again", again, thread())) == facts(messages)


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and the texts of its messages."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self._within = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._within = tag == "div"
        if self._within:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = False

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts[-1] += data


@FEW
@given(st.lists(st.text("<>&\"'/ abc\nscript!-", min_size=1), min_size=1, max_size=5), TEXTS)
def test_nothing_said_is_markup(texts: list[str], name: str) -> None:
    messages = [
        StoredMessage(seq=n, role="user", text=text, time="2026-03-02T09:00", speaker=name)
        for n, text in enumerate([*texts, "</div></article><script>alert(1)</script>"], 1)
    ]
    page = Page(write_html(f"{name}</title>", messages))
    assert page.texts == [m.text for m in messages]
    assert page.tags <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "article",
        "header",
        "div",
    }
    markdown = write_markdown(name, messages)
    said = re.sub(r"(?m)^(> ?.*|# .*|## 2 March 2026|\*\*.* · 09:00 · m\d+\*\*)?$", "", markdown)
    assert not said.strip()


@pytest.mark.slow
def test_the_command_exports_pages_markdown_and_lines(run: Run, tmp_path: Path) -> None:
    run("chat", "kept", stdin="茶：<b>一</b>\n")
    page = tmp_path / "kept.html"
    assert "2 messages" in run("export", "kept", "--to", "html", "--out", str(page)).out
    assert "茶：&lt;b&gt;一&lt;/b&gt;" in page.read_text("utf-8")
    assert "> 茶：<b>一</b>" in run("export", "kept").out
    assert "> 字：<x>字</x>" in run("export", "kept", "--hide-texts").out
    lines = run("export", "kept", "--to", "jsonl").out
    assert lines == run("transcript", "kept", "--json").out
    (tmp_path / "kept.jsonl").write_text(lines, "utf-8")
    run("import", "jsonl", str(tmp_path / "kept.jsonl"), "--session", "again")
    assert run("export", "again", "--to", "jsonl").out == lines
    assert "there is no session" in run("export", "nobody").err
    assert "cannot write" in run("export", "kept", "--out", str(tmp_path)).err
