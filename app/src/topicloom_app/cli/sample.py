"""The sample of the inspector: its session ships with the package, and each start opens a copy."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from rich.console import Console

from topicloom import RESPONDER, RecordedResponder, TopicLoomError, embedded_roles, open_embedder
from topicloom.hosting import CompiledSessionGraph, name_thread
from topicloom_app.cli.console import print_dim
from topicloom_app.cli.context import CliContext
from topicloom_app.cli.replay import feed_recording, open_small
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import cut_rounds, load_first_conversation

_UNUSABLE = (
    BadZipFile,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    TopicLoomError,
    ValueError,
    zlib.error,
)
"""What a file that is missing or damaged, or of another version, may raise."""


@contextmanager
def open_sample(
    context: CliContext, console: Console, sample: Path
) -> Iterator[tuple[CompiledSessionGraph, SqliteSaver, SqliteStore]]:
    """The graph over a copy of the sample's session.

    The session is in the archive beside the recording, which `bin/generate --all` makes. If
    it cannot be opened, that is said and the recording is replayed.

    Args:
        context: Its settings are those of the graph; its folder is left alone.
        console: Where it is said that the sample is being replayed.
        sample: The recording, whose name is that of the session.
    """
    with open_small(context) as small:
        conversation = load_first_conversation(sample, None)
        if not _unpack(small, sample, conversation):
            print_dim(
                console,
                "the prepared sample cannot be opened: replaying the conversation instead, which"
                " takes about 20 seconds",
            )
            replay_sample(small, console, sample.stem, conversation)
        with small.open_graph() as opened:
            yield opened


def replay_sample(
    context: CliContext,
    console: Console,
    name: str,
    conversation: Conversation,
    clock: Callable[[], datetime] | None = None,
) -> None:
    """Replay a recording into a session of an empty folder, without a model.

    Args:
        context: Has the folder.
        console: Where a bar shows how far it is.
        name: The session.
        conversation: The recording.
        clock: Tells the time, with its zone; the system's if not given.
    """
    roles = embedded_roles(open_embedder(context.settings.embedder))
    recorded = RecordedResponder(otherwise=roles[RESPONDER])
    with context.open_graph(roles.replace(RESPONDER, recorded), clock) as (graph, *_):
        feed_recording(console, graph, recorded, conversation, name_thread(name))


def _unpack(context: CliContext, sample: Path, conversation: Conversation) -> bool:
    """Unpack the session of a recording into an empty folder; False, and a folder that is empty,
    if it cannot be opened or is not that of the recording."""
    try:
        with ZipFile(sample.with_suffix(".zip")) as packed:
            packed.extractall(context.folder)
        if _has_session(context, sample.stem, conversation):
            return True
    except _UNUSABLE:
        pass
    shutil.rmtree(context.folder)
    context.folder.mkdir(mode=0o700)
    return False


def _has_session(context: CliContext, name: str, conversation: Conversation) -> bool:
    """True if a session has as many messages as a recording, and ends with the same."""
    session, store = context.read_session(name)
    rounds = cut_rounds(conversation)
    last = rounds[-1].reply or rounds[-1].said[-1]
    same = session.count == sum(map(len, rounds))
    return same and store.message(session, session.count).text == last.text
