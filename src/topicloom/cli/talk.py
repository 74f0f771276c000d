"""One turn of a chat: the reply as it comes, what happens behind it as dim lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from rich.console import Console

from topicloom.cli.console import clean, dim
from topicloom.cli.excerpts import shortened
from topicloom.cli.quoted import counted
from topicloom.evaluation.replay import Graph
from topicloom.state.receipt import Receipt
from topicloom.state.records import text_of


@dataclass(slots=True)
class Talk:
    """A session at the terminal."""

    graph: Graph
    config: RunnableConfig
    console: Console
    writing: bool = False
    """Whether a reply stands unfinished on the current line."""

    @property
    def unfinished(self) -> bool:
        """Whether the last turn stopped before its end."""
        return bool(self.graph.get_state(self.config).next)

    def say(self, text: str | None) -> None:
        """Send a message and print the reply.

        Args:
            text: The message; None to run the last turn again after a failure.

        Raises:
            ReplyError: The model gave none.
        """
        try:
            for kind, data in self._stream(text):
                if kind == "messages":
                    self._write(data)
                else:
                    self._remark(data)
        finally:
            self._end_line()

    def _stream(self, text: str | None) -> Iterator[tuple[str, Any]]:
        said = None if text is None else {"messages": [HumanMessage(text)]}
        for part in self.graph.stream(
            said, self.config, stream_mode=["messages", "custom"], durability="exit"
        ):
            kind, data = part
            yield str(kind), data

    def _write(self, data: tuple[object, dict[str, Any]]) -> None:
        chunk, where = data
        if isinstance(chunk, AIMessageChunk) and where.get("langgraph_node") == "main_generate":
            piece = clean(text_of(chunk))
            self.console.out(piece, end="", highlight=False)
            self.writing = self.writing or bool(piece)

    def _remark(self, event: dict[str, Any]) -> None:
        remark = remark_of(event)
        if remark:
            self._end_line()
            dim(self.console, remark)

    def _end_line(self) -> None:
        if self.writing:
            self.console.out("")
        self.writing = False


def remark_of(event: dict[str, Any]) -> str:
    """What a progress event says to the user; nothing for most."""
    match event:
        case {"type": "split", "blocks": 0}:
            return "· the window is full: notes of earlier turns make room"
        case {"type": "split", "first": first, "last": last}:
            return f"· the window is filling: m{first} to m{last} move into topics"
        case {"type": "searching", "query": query, "when": when}:
            return f"· looking for “{shortened(query, 60)}”" + (f" ({when})" if when else "")
        case {"type": "remembering"}:
            return "· going through all topics for what was said before"
        case {"type": "reply_restarted"}:
            return "· the reply broke off; once more"
        case {"type": "receipt", "receipt": receipt}:
            return _quoted(Receipt.model_validate(receipt))
    return ""


def _quoted(receipt: Receipt) -> str:
    failed = [f"{c.role}: {shortened(c.failure or '', 60)}" for c in receipt.failures]
    lines = [f"· quoted {counted(receipt.quoted, 3)}"] if receipt.quoted else []
    lines += [f"· did without {'; '.join(failed)}"] if failed else []
    return "\n".join(lines)
