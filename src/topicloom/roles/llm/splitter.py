"""The splitter as a chat model: it assigns messages to topics by name and brief."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from topicloom.context.asking import splitter_messages
from topicloom.effects import Step
from topicloom.prompts.parsers import parse_split
from topicloom.roles.base import Answer, SplitRequest
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip, remark
from topicloom.state.hierarchy import BETWEEN
from topicloom.state.splitting import Assignment
from topicloom.state.topics import Topic

_NAME = 80
"""Characters of a topic's name."""
_BRIEF = 2_000
"""Characters of a topic's brief; the prompt asks for half of it (spec 000, 4.6: about 1 KB)."""


class LLMSplitter(LLMRole[SplitRequest, tuple[Assignment, ...]]):
    """Assigns the messages of blocks to topics."""

    role = "splitter"

    def step(self, request: SplitRequest) -> Step[Answer[tuple[Assignment, ...]]]:
        """Assign the messages; what names no message or topic of the request is dropped."""
        prompt = splitter_messages(
            request.blocks,
            request.segments,
            request.topics,
            request.active,
            request.language,
            self._chat.counter,
            self._chat.limit,
            request.dividing,
        )
        asked = yield from self.ask(request, "splitter", prompt, parse_split, "topic_split")
        usable, remarks = _mended(request, asked.value)
        return Answer(usable, asked.usage, asked.remarks + remarks)


def _mended(
    request: SplitRequest, said: Sequence[Assignment]
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    """The assignments that can be followed, and remarks on the rest."""
    known = [i for block in request.blocks for i in block.ids]
    topics = {t.id for t in request.topics}
    named = _named(request.topics)
    messages = set(known)
    usable = [
        settled
        for a in said
        if a.message in messages and (settled := _settled(a, topics, named)) is not None
    ]
    covered = {a.message for a in usable}
    strangers = list(dict.fromkeys(a.message for a in said if a.message not in messages))
    unknown = list(dict.fromkeys(a.topic for a in said if a.topic and a.topic not in topics))
    others = list(dict.fromkeys(i for a in said for i in a.also if i not in topics))
    left = [i for i in known if i not in covered]
    return tuple(usable), (
        *remark(strangers, "id was not to be assigned", "ids were not to be assigned"),
        *remark(unknown, "topic does not exist", "topics do not exist"),
        *remark(others, "reference is to no topic", "references are to no topics"),
        *remark(left, "message is not assigned", "messages are not assigned"),
    )


def _named(topics: Sequence[Topic]) -> dict[str, str]:
    """Ids by name; a sub-topic goes by its full name, and by its last part if no other does."""
    last = Counter(_last(t) for t in topics)
    ids = {_last(t): t.id for t in topics if last[_last(t)] == 1}
    return ids | {t.name.casefold(): t.id for t in topics}


def _last(topic: Topic) -> str:
    return topic.name.rpartition(BETWEEN)[2].casefold()


def _settled(assignment: Assignment, topics: set[str], named: dict[str, str]) -> Assignment | None:
    """An assignment to a topic that exists or has a name; "new" ones that exist are those."""
    also = tuple(i for i in assignment.also if i in topics)
    if assignment.topic in topics:
        return replace(assignment, also=also)
    name = clip(assignment.name, _NAME)
    if not name:
        return None
    topic = named.get(name.casefold())
    return replace(
        assignment, topic=topic, name=name, brief=clip(assignment.brief, _BRIEF), also=also
    )
