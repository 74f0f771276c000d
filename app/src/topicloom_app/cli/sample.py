"""The sample of the inspector: its session ships with the package, and each start opens a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from zipfile import ZipFile

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore
from rich.console import Console

from topicloom import RESPONDER, embedded_roles, open_embedder
from topicloom.hosting import CompiledSessionGraph, name_thread
from topicloom_app.cli.context import CliContext
from topicloom_app.cli.replay import feed_recording, open_small
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import RecordedResponder


@contextmanager
def unpack_sample(context: CliContext, sample: Path) -> Iterator[CliContext]:
    """The context of a temporary folder with a copy of the sample's session.

    Args:
        context: Its settings are those of the copy; its folder is left alone.
        sample: The recording, whose name is that of the session. The session is in the archive
            beside it, which `bin/generate --sample` makes.
    """
    with open_small(context) as small:
        with ZipFile(sample.with_suffix(".zip")) as packed:
            packed.extractall(small.folder)
        yield small


@contextmanager
def open_sample(
    context: CliContext, sample: Path
) -> Iterator[tuple[CompiledSessionGraph, SqliteSaver, BaseStore]]:
    """The graph over a copy of the sample's session, as `unpack_sample` makes it."""
    with unpack_sample(context, sample) as small, small.open_graph() as opened:
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
