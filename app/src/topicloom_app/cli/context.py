"""The settings, the folder of sessions with its files, and the models of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore

from topicloom import (
    FileStorage,
    InputError,
    Memory,
    Roles,
    Session,
    SessionStore,
    Settings,
    Storage,
    build_session_graph,
    local_checkpointer,
)
from topicloom.hosting import (
    CompiledSessionGraph,
    FilledText,
    choose_models,
    get_model_name,
    load_keys,
    name_thread,
    open_local_store,
    protect_storage,
)
from topicloom_app.cli.console import CliOptions
from topicloom_app.cli.limits import change_limits
from topicloom_app.cli.words import say
from topicloom_app.session_names import check_session_name

if TYPE_CHECKING:
    from topicloom import EncryptionKeys


@dataclass(frozen=True, slots=True)
class CliContext:
    """A folder of sessions: their storage, a file with their checkpoints, one for reflection."""

    settings: Settings
    folder: Path
    storage: Storage
    keys: EncryptionKeys | None = None
    """What all of it is encrypted with."""

    @contextmanager
    def open_checkpoints(self, *, reading: bool = False) -> Iterator[SqliteSaver]:
        """Open the checkpoints of all sessions, or raise `StorageUnavailableError`.

        For `reading` nothing is made that is missing, here and below.
        """
        saver = local_checkpointer(self.folder, reading=reading, keys=self.keys)
        try:
            yield saver
        finally:
            saver.close()

    @contextmanager
    def open_store(self, *, reading: bool = False) -> Iterator[BaseStore]:
        """Open the store with what reflection found, or raise `StorageUnavailableError`."""
        with open_local_store(self.folder, reading=reading, keys=self.keys) as store:
            yield store

    @contextmanager
    def open_graph(
        self, roles: Roles | None = None, clock: Callable[[], datetime] | None = None
    ) -> Iterator[tuple[CompiledSessionGraph, SqliteSaver, BaseStore]]:
        """Open the graph over the folder's sessions, with their checkpoints and the store."""
        builder = build_session_graph(
            settings=self.settings, roles=roles, storage=self.storage, clock=clock
        )
        with self.open_checkpoints() as saver, self.open_store() as store:
            yield builder.compile(checkpointer=saver, store=store), saver, store

    @contextmanager
    def open_bare_graph(
        self, roles: Roles | None = None, *, reading: bool = False
    ) -> Iterator[tuple[CompiledSessionGraph, SqliteSaver]]:
        """Open the same with the checkpoints alone, without what reflection found."""
        builder = build_session_graph(settings=self.settings, roles=roles, storage=self.storage)
        with self.open_checkpoints(reading=reading) as saver:
            yield builder.compile(checkpointer=saver), saver

    def read_session(self, name: str) -> tuple[Session, SessionStore]:
        """A session's newest checkpoint and its storage; raises `InputError` if there is none."""
        check_session_name(name)
        session = self.find_session(name)
        if session is None:
            known = self.storage.sessions()
            if name in known and self.has_checkpoint(name):
                raise InputError(
                    "session {name!r} belongs to an agent or another graph: continue it there."
                    " To read it: topicloom transcript {name}",
                    name=name,
                )
            if name in known:
                raise InputError(
                    "session {name!r} is in {folder}, but its checkpoints are not: compile"
                    " its graph with checkpointer=local_checkpointer(), which keeps them there. If"
                    " they are lost, topicloom repair {name} continues without them",
                    name=name,
                    folder=self.folder,
                )
            there = ", ".join(known) or say("none yet")
            raise InputError(
                "there is no session {name!r} in {folder} (there: {there})."
                " To begin it: topicloom chat {name}",
                name=name,
                folder=self.folder,
                there=there,
            )
        return session, SessionStore(self.storage.open(name))

    def check_session(self, name: str) -> None:
        """Raise `InputError` if neither files nor checkpoints of a session are there."""
        if name not in self.storage.sessions():
            self.read_session(name)

    def open_memory(self, name: str, store: BaseStore | None = None) -> Memory:
        """A session to look at and to change, with the facts of a store.

        Its checkpoints may be in another place. The next turn takes the changes in, also in an open
        chat. Raises `InputError` if there is no such session.
        """
        self.check_session(check_session_name(name))
        return Memory(self.storage, name, store=store, embedder=self.settings.embedder)

    def has_checkpoint(self, name: str) -> bool:
        """True if the folder has a checkpoint of this name, of a session graph or of an agent."""
        with self.open_checkpoints(reading=True) as saver:
            return saver.get(name_thread(name)) is not None

    def find_session(self, name: str) -> Session | None:
        """The session of the newest checkpoint; None if there is none."""
        with self.open_checkpoints(reading=True) as saver:
            found = saver.get(name_thread(name))
        value = found["channel_values"].get("session") if found else None
        return Session.model_validate(value) if value else None


def open_context(cli: CliOptions) -> CliContext:
    """The context of a command: the environment's settings, changed by its options.

    Raises `ConfigurationError` if a setting or the folder cannot be used.
    """
    changes = {"folder": cli.folder, "language": cli.language}
    given: dict[str, Any] = {key: v for key, v in changes.items() if v is not None}
    settings = Settings()
    given["limits"] = change_limits(settings.limits, cli.limits)
    settings = settings.model_copy(update=given)
    return make_context(settings.folder, settings)


def make_context(folder: Path | None, settings: Settings) -> CliContext:
    """The context of a folder; None for the user's data folder."""
    storage = FileStorage(folder, fsync=settings.fsync, topic_files=settings.topic_files)
    keys = load_keys(settings)
    return CliContext(settings, storage.root, protect_storage(storage, keys), keys)


def find_reply_model(settings: Settings) -> str | None:
    """The model that writes replies; None for the embedded default."""
    model = choose_models(settings).of("responder")
    return None if model is None else get_model_name(model)


def describe_model(settings: Settings) -> str:
    """A line that names the model, or says how to set one."""
    model = find_reply_model(settings)
    if model is not None:
        return FilledText("model {model}", model=model)
    return (
        "no model is set: replies only quote what was said. For a real one set"
        " TOPICLOOM_MODEL=openai:gpt-5-mini and OPENAI_API_KEY"
    )
