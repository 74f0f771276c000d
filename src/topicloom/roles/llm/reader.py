"""The reader as a chat model: it sees the whole topic and the current conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from topicloom.context.opening import Openings
from topicloom.context.windows import reader_messages
from topicloom.effects import Step
from topicloom.prompts.parsers import ParsedReading, parse_reading
from topicloom.roles.base import Answer, ReadRequest
from topicloom.roles.llm.chat import Chat
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip, remark
from topicloom.state.recall import Quote, Reading

_FAINT = 0.3
"""Score under which a topic has nothing to hand over (spec 000, 4.2)."""
_SUMMARY = 2_000
"""Characters of a summary (spec 000, 15.1)."""
_DECAY = 0.02
"""By how much each further quote weighs less; the last ones half as much as the first."""


class LLMReader(LLMRole[ReadRequest, Reading]):
    """Reads a topic window."""

    role = "reader"

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        self._openings = Openings()

    def step(self, request: ReadRequest) -> Step[Answer[Reading]]:
        """Read the topic; ids that are not in it are dropped."""
        prompt = reader_messages(
            request.records,
            request.tail,
            request.language,
            self._chat.counter,
            self._chat.limit,
            partial(self._openings, (request.session, request.topic.id)),
        )
        asked = yield from self.ask(
            request, f"reader:{request.topic.id}", prompt, parse_reading, "topic_result"
        )
        known = {r.id for r in request.records}
        strangers = [i for i in asked.value.ids if i not in known]
        ids = [i for i in asked.value.ids if i in known]
        remarks = remark(strangers, "id is not in the topic", "ids are not in the topic")
        reading = _reading(request.topic.id, asked.value, ids)
        return Answer(reading, asked.usage, asked.remarks + remarks)


def _reading(topic: str, parsed: ParsedReading, ids: Sequence[str]) -> Reading:
    if parsed.score < _FAINT:
        return Reading(topic=topic, score=parsed.score)
    weights = [parsed.score * max(0.5, 1 - _DECAY * place) for place in range(len(ids))]
    return Reading(
        topic=topic,
        score=parsed.score,
        quotes=tuple(Quote(id=i, weight=w) for i, w in zip(ids, weights, strict=True)),
        summary=clip(parsed.summary, _SUMMARY),
    )
