"""A responder that says what was said: for replaying recorded conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from langchain_core.messages import AIMessage, AIMessageChunk

from topicloom.roles.base import ReplyRequest, Responder


class RecordedResponder:
    """Gives the recorded reply of a session, if one is expected, and otherwise asks another."""

    model = "recorded"

    def __init__(self, otherwise: Responder) -> None:
        self._otherwise = otherwise
        self._replies: dict[str, AIMessage] = {}

    def expect(self, session: str, reply: AIMessage | None) -> None:
        """Set the reply of a session's next turns; None to have the other responder asked."""
        if reply is None:
            self._replies.pop(session, None)
        else:
            self._replies[session] = reply

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The recorded reply in one piece."""
        reply = self._replies.get(request.session)
        if reply is None:
            yield from self._otherwise.stream(request)
        else:
            yield _chunk(reply)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The recorded reply in one piece."""
        reply = self._replies.get(request.session)
        if reply is None:
            async for chunk in self._otherwise.astream(request):
                yield chunk
        else:
            yield _chunk(reply)


def _chunk(reply: AIMessage) -> AIMessageChunk:
    return AIMessageChunk(
        content=reply.content,
        id=reply.id,
        name=reply.name,
        additional_kwargs=reply.additional_kwargs,
    )
