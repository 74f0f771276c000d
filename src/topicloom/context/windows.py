"""The prompt of a topic window: it changes only at its end from one turn to the next.

    system | the topic, a message a logical block | the conversation now, a message a message

The topic's last message is marked as the end of what lasts: a cache that has to be told keeps the
topic where the conversation begins anew.

A tail message gets a prompt message of its own because a block of the tail is not finished:
the reply to the newest message would change it. A provider that matches at message ends finds
everything but the newest messages again.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.lasting import lasting
from topicloom.context.opening import Opening
from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.prompts.loader import PromptName, prompt
from topicloom.prompts.wording import wording
from topicloom.state.blocks import blocks_of
from topicloom.state.records import Record, text_of
from topicloom.state.session import Language

_RESERVE = 48
"""Tokens for the lines that say where the conversation begins and what is not shown."""
_REPLY = 128
"""Tokens past which a reply or a tool's result in the conversation is shown in part: what the
user says tells whether a topic is needed, and what replies said is new to every reader each turn.
"""


def reader_messages(
    records: Sequence[Record],
    tail: Sequence[Record],
    language: Language,
    counter: TokenCounter,
    limit: int,
    begin: Opening,
) -> list[BaseMessage]:
    """The prompt by which a topic is read.

    Adding messages to the tail adds messages to the prompt and changes none, until the
    conversation has filled its room: what the topic leaves, a quarter at least and half at most.
    A message or block of more than a fifth of all room is shown in part, and so are long replies
    of the conversation. Of a topic that is still too large, and of the conversation, the oldest is
    left out, much at a time, so that the prefix breaks once in many turns and not in each.

    Args:
        records: The topic's messages, in order.
        tail: The current conversation, newest last.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt, some thousand at least.
        begin: Decides how many leading messages of the tail are left out.
    """
    words = wording(language)
    system = SystemMessage(prompt("reader", language))
    room = limit - counter.message(system) - _RESERVE
    topic = _topic(records, Transcript(counter, room // 5, language), room * 3 // 4, limit // 8)
    left = min(room // 2, room - sum(map(counter.message, topic)))
    shown = Transcript(counter, room // 5, language, min(_REPLY, room // 5))
    lines = shown.lines(tail)
    before = hash(tuple(map(text_of, [system, *topic])))
    cut = begin(before, [r.seq for r in tail], sizes_of(lines, counter), left)
    # The first is written again, so that it is dated. Without a notice: its count would change.
    current = [*shown.lines(tail[cut : cut + 1]), *lines[cut + 1 :]]
    if current:
        current[0] = f"{words.now}\n{current[0]}"
    return [system, *topic, *map(HumanMessage, current)]


def brief_messages(
    records: Sequence[Record],
    name: str,
    brief: str,
    language: Language,
    counter: TokenCounter,
    limit: int,
    *,
    role: PromptName = "brief",
) -> list[BaseMessage]:
    """The prompt by which a topic's brief is written; the former brief stands last.

    Args:
        records: The topic's messages, in order; the oldest are left out if they don't fit.
        name: The topic's name so far.
        brief: Its brief so far.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
        role: Who is asked: a reviewer is shown the same.
    """
    words = wording(language)
    system = SystemMessage(prompt(role, language))
    former = HumanMessage(
        f"{words.former_brief}\n{name or words.nothing}\n{brief or words.nothing}"
    )
    room = limit - counter.message(system) - counter.message(former) - _RESERVE
    shown = Transcript(counter, limit // 4, language)
    return [system, *_topic(records, shown, room, limit // 8), former]


def _topic(
    records: Sequence[Record], shown: Transcript, room: int, step: int
) -> list[HumanMessage]:
    """The logical blocks of a topic, the oldest left out if they don't fit."""
    blocks = blocks_of(records)
    texts = shown.blocks(blocks)
    cut = left_out(sizes_of(texts, shown.counter), room, step)
    count = sum(len(block.records) for block in blocks[:cut])
    rest = rest_of(texts, cut, wording(shown.language).missing.format(count=count))
    return [*map(HumanMessage, rest[:-1]), *map(lasting, rest[-1:])]


def left_out(sizes: Sequence[int], room: int, step: int) -> int:
    """How many leading items to leave out so that the rest fits.

    What is left out comes to a multiple of `step` at least, so the cut stays where it is while
    the items grow by less than a step.
    """
    over = sum(sizes) - room
    if over <= 0:
        return 0
    goal, dropped = -(-over // step) * step, 0
    for index, size in enumerate(sizes):
        if dropped >= goal:
            return index
        dropped += size
    return len(sizes)


def sizes_of(texts: Sequence[str], counter: TokenCounter) -> list[int]:
    """Tokens of each text as a message."""
    return [counter.message(HumanMessage(text)) for text in texts]


def rest_of(texts: Sequence[str], cut: int, notice: str) -> list[str]:
    """The texts after a cut, the first of them under a line that says what is missing."""
    if not cut:
        return list(texts)
    return [f"{notice}\n{texts[cut]}", *texts[cut + 1 :]] if cut < len(texts) else [notice]
