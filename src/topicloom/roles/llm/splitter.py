"""The splitter as a chat model: it assigns messages to topics by name and brief."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicloom.context.asking import splitter_messages
from topicloom.prompts.parsers import parse_split
from topicloom.roles.base import Answer, SplitRequest
from topicloom.roles.llm.dialogue import Dialogue, LLMRole, ask
from topicloom.roles.llm.mending import clip, remark
from topicloom.state.splitting import Assignment

_NAME = 80
"""Characters of a topic's name."""
_BRIEF = 2_000
"""Characters of a topic's brief; the prompt asks for half of it (spec 000, 4.6: about 1 KB)."""


class LLMSplitter(LLMRole[SplitRequest, tuple[Assignment, ...]]):
    """Assigns the messages of blocks to topics."""

    role = "splitter"

    def dialogue(self, request: SplitRequest) -> Dialogue[Answer[tuple[Assignment, ...]]]:
        """Assign the messages; what names no message or topic of the request is dropped."""
        prompt = splitter_messages(
            request.blocks,
            request.segments,
            request.topics,
            request.active,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        asked = yield from ask(self._chat, request, "splitter", prompt, parse_split, "topic_split")
        usable, remarks = _mended(request, asked.value)
        return Answer(usable, asked.usage, asked.remarks + remarks)


def _mended(
    request: SplitRequest, said: Sequence[Assignment]
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    """The assignments that can be followed, and remarks on the rest."""
    known = [i for block in request.blocks for i in block.ids]
    topics = {t.id for t in request.topics}
    named = {t.name.casefold(): t.id for t in request.topics}
    messages = set(known)
    usable = [
        settled
        for a in said
        if a.message in messages and (settled := _settled(a, topics, named)) is not None
    ]
    covered = {a.message for a in usable}
    strangers = list(dict.fromkeys(a.message for a in said if a.message not in messages))
    unknown = list(dict.fromkeys(a.topic for a in said if a.topic and a.topic not in topics))
    left = [i for i in known if i not in covered]
    return tuple(usable), (
        *remark(strangers, "id was not to be assigned", "ids were not to be assigned"),
        *remark(unknown, "topic does not exist", "topics do not exist"),
        *remark(left, "message is not assigned", "messages are not assigned"),
    )


def _settled(assignment: Assignment, topics: set[str], named: dict[str, str]) -> Assignment | None:
    """An assignment to a topic that exists or has a name; "new" ones that exist are those."""
    if assignment.topic in topics:
        return assignment
    name = clip(assignment.name, _NAME)
    if not name:
        return None
    topic = named.get(name.casefold())
    return replace(assignment, topic=topic, name=name, brief=clip(assignment.brief, _BRIEF))
