"""The prompt of a topic window: it changes only at its end from one turn to the next.

    system | the topic, a message a logical block | the conversation now, a message a message

A tail message gets a prompt message of its own because a block of the tail is not finished:
the reply to the newest message would change it. A provider that matches at message ends finds
everything but the newest messages again.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.opening import Opening, opening
from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.prompts.loader import PromptName, prompt
from topicloom.prompts.wording import wording
from topicloom.state.blocks import blocks_of
from topicloom.state.records import Record
from topicloom.state.session import Language

_RESERVE = 48
"""Tokens for the lines that say where the conversation begins and what is not shown."""


def reader_messages(
    records: Sequence[Record],
    tail: Sequence[Record],
    language: Language,
    counter: TokenCounter,
    limit: int,
    begin: Opening = opening,
) -> list[BaseMessage]:
    """The prompt by which a topic is read.

    Adding messages to the tail adds messages to the prompt and changes none, as long as
    everything fits. A message or block of more than a quarter of the limit is shown in part; of
    what still doesn't fit, the oldest is left out, much at a time, so that the prefix breaks once
    in many turns and not in each.

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
    shown = Transcript(counter, limit // 4, language)
    room = limit - counter.message(system) - _RESERVE
    step = max(1, limit // 8)
    now = shown.lines(tail)
    now_sizes = sizes_of(now, counter)
    now_cut = begin([r.seq for r in tail], now_sizes, room // 2)
    topic_room = room - min(sum(now_sizes), room // 2)
    topic = _topic(records, shown, topic_room, step)
    # Written again, so that the first is dated. Without a notice: what it would count changes.
    current = shown.lines(tail[now_cut:])
    if current:
        current[0] = f"{words.now}\n{current[0]}"
    return [system, *map(HumanMessage, [*topic, *current])]


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
    return [system, *map(HumanMessage, _topic(records, shown, room, max(1, limit // 8))), former]


def _topic(records: Sequence[Record], shown: Transcript, room: int, step: int) -> list[str]:
    """The logical blocks of a topic, the oldest left out if they don't fit."""
    blocks = blocks_of(records)
    texts = shown.blocks(blocks)
    cut = left_out(sizes_of(texts, shown.counter), room, step)
    count = sum(len(block.records) for block in blocks[:cut])
    return rest_of(texts, cut, wording(shown.language).missing.format(count=count))


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
