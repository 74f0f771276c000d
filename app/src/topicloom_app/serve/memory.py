"""The memory of threads over HTTP: what `Memory` and `PersonMemory` do, for any language."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from topicloom import (
    Absence,
    DeletionReceipt,
    Fact,
    FactSpan,
    Memory,
    MemoryChange,
    MemoryTopic,
    PersonThread,
    Receipt,
)
from topicloom.hosting import get_text, to_row
from topicloom_app.changes import Change
from topicloom_app.serve.callers import Caller
from topicloom_app.serve.memory_values import (
    Changed,
    Day,
    ForgetRequest,
    Forgotten,
    FoundMessage,
    Limit,
    Message,
    MessageId,
    Thread,
    TopicId,
    UserTimezone,
    show_message,
    show_messages,
    show_thread,
)
from topicloom_app.serve.operations import Operation
from topicloom_app.ui.answers import PromptMessage


async def list_threads(caller: Caller, after: str = "", limit: Limit = 50) -> list[Thread]:
    """The threads, in the order of their names.

    Those behind `after`; the last one of a page asks for the next page.
    """
    return await caller.list_threads(after, limit)


async def show_session(memory: Memory) -> Thread:
    """A thread."""
    return show_thread(await memory.asession())


async def delete_thread(memory: Memory) -> None:
    """Delete a thread for good: what is stored of it, its facts and its checkpoints."""
    await memory.adelete()


async def list_topics(memory: Memory) -> list[MemoryTopic]:
    """The topics, loose ends last."""
    return await memory.atopics()


async def show_topic(memory: Memory, topic: TopicId) -> MemoryTopic:
    """A topic."""
    return await memory.atopic(topic)


async def list_topic_messages(
    memory: Memory, topic: TopicId, after: MessageId = "", limit: Limit = 50
) -> list[Message]:
    """The messages of a topic, in order.

    Those behind `after`; the last one of a page asks for the next page.
    """
    found = await memory.atopic(topic)
    last = (await memory.aquote(after)).seq if after else 0
    return show_messages([m for m in await found.amessages() if m.seq > last][:limit])


async def list_unsplit(memory: Memory) -> dict[str, list[Message]]:
    """The messages in no topic yet, by the name of the topic that they would open now.

    "" has those that would open none.
    """
    found = await memory.aprovisional()
    return {name: show_messages(messages) for name, messages in found.items()}


async def search(
    memory: Memory, text: str, since: Day = None, until: Day = None, limit: Limit = 20
) -> list[FoundMessage]:
    """The messages that fit a text best, best first.

    Where none fits, up to three that are closest in meaning, with `fits` false.
    """
    found = await memory.asearch(text, since, until, limit)
    return [FoundMessage.model_validate(hit, from_attributes=True) for hit in found]


async def list_messages(memory: Memory, before: MessageId = "", limit: Limit = 50) -> list[Message]:
    """A page of the conversation, in order: the newest messages, or those before one.

    The first one of a page asks for the page before it.
    """
    return show_messages(await memory.ahistory(before or None, limit))


async def show_quote(memory: Memory, message: MessageId) -> Message:
    """A message, word for word."""
    return show_message(await memory.aquote(message))


async def list_receipts(memory: Memory, newest: Limit = 20, skipped: int = 0) -> list[Receipt]:
    """What the newest turns did, in order, without the last `skipped` ones."""
    return await memory.areceipts(newest, skipped)


async def explain_absence(memory: Memory, turn: int, message: MessageId) -> Absence:
    """The reason why a turn did not quote a message, or how it did."""
    return await memory.awhy_not(turn, message)


async def show_prompt(memory: Memory) -> list[PromptMessage]:
    """The prompt of the newest turn, built again from what is stored."""
    return [PromptMessage(role=m.type, text=get_text(m)) for m in await memory.aprompt()]


async def list_facts(memory: Memory, at: Day = None) -> dict[str, Fact]:
    """The facts about the user that hold now or on a day, by key."""
    return await memory.afacts(at)


async def list_fact_spans(memory: Memory) -> list[FactSpan]:
    """All facts about the user, with the spans in which they hold."""
    return await memory.afact_spans()


async def list_changes(memory: Memory) -> list[MemoryChange]:
    """The changes that people and reviews made to topics, in order."""
    return await memory.achanges()


async def make_change(memory: Memory, body: Change) -> Changed:
    """Change topics or facts, or undo a change."""
    match await body.root.make(memory):
        case MemoryTopic() as topic:
            return Changed(topic=topic)
        case Fact() as fact:
            return Changed(fact=fact)
        case undone:
            return Changed(undone=undone)


async def forget(memory: Memory, body: ForgetRequest) -> Forgotten:
    """Remove messages for good, with what was made of them, and facts that rest on them.

    With `dry_run`, nothing is removed: the answer says what would be.
    """
    gone = await memory.aforget(*body.what, dry_run=body.dry_run)
    return Forgotten.model_validate(gone, from_attributes=True)


async def export_thread(memory: Memory) -> list[dict[str, Any]]:
    """All messages, each as a line of a file that `topicloom import jsonl` reads."""
    return [to_row(message) for message in await memory.ahistory(limit=None)]


async def list_user_threads(caller: Caller) -> list[PersonThread]:
    """The threads of the user in all scopes, those with the newest message first."""
    return await caller.person.athreads()


async def list_user_facts(caller: Caller, at: Day = None) -> list[FactSpan]:
    """The facts about the user in all scopes that hold now, or on a day."""
    return await caller.person.afacts(at)


async def show_user_timezone(caller: Caller) -> UserTimezone:
    """Where the user is."""
    return UserTimezone(timezone=await caller.person.atimezone())


async def set_user_timezone(caller: Caller, body: UserTimezone) -> UserTimezone:
    """Say where the user is in all threads that never said it."""
    await caller.person.aset_timezone(body.timezone)
    return await show_user_timezone(caller)


async def export_user(caller: Caller) -> list[dict[str, Any]]:
    """Everything of the user, each row with a `kind`: user, threads, messages, topics, facts."""
    return await caller.person.aexport()


async def delete_user(caller: Caller) -> DeletionReceipt:
    """Delete everything of the user for good."""
    person, held = caller.person, AsyncExitStack()
    async with held:
        for name in sorted(found.thread for found in await person.athreads()):
            await held.enter_async_context(caller.conversations.hold(name))
        return await person.adelete()


OPERATIONS = (
    Operation("GET", "/threads", list_threads),
    Operation("GET", "/threads/{thread}", show_session),
    Operation("DELETE", "/threads/{thread}", delete_thread),
    Operation("GET", "/threads/{thread}/topics", list_topics),
    Operation("GET", "/threads/{thread}/topics/{topic}", show_topic),
    Operation("GET", "/threads/{thread}/topics/{topic}/messages", list_topic_messages),
    Operation("GET", "/threads/{thread}/unsplit", list_unsplit),
    Operation("GET", "/threads/{thread}/search", search),
    Operation("GET", "/threads/{thread}/messages", list_messages),
    Operation("GET", "/threads/{thread}/messages/{message}", show_quote),
    Operation("GET", "/threads/{thread}/receipts", list_receipts),
    Operation("GET", "/threads/{thread}/turns/{turn}/why-not/{message}", explain_absence),
    Operation("GET", "/threads/{thread}/prompt", show_prompt),
    Operation("GET", "/threads/{thread}/facts", list_facts),
    Operation("GET", "/threads/{thread}/fact-spans", list_fact_spans),
    Operation("GET", "/threads/{thread}/changes", list_changes),
    Operation("POST", "/threads/{thread}/changes", make_change),
    Operation("POST", "/threads/{thread}/forget", forget),
    Operation("GET", "/threads/{thread}/export", export_thread),
    Operation("GET", "/user/threads", list_user_threads),
    Operation("GET", "/user/facts", list_user_facts),
    Operation("GET", "/user/timezone", show_user_timezone),
    Operation("POST", "/user/timezone", set_user_timezone),
    Operation("GET", "/user/export", export_user),
    Operation("DELETE", "/user", delete_user),
)
"""Everything that clients can ask for."""
