"""What the commands work with: settings, the folder of sessions, its files, and the models."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from pydantic import ValidationError
from pydantic_settings import SettingsError

from topicloom.cli.console import CliOptions
from topicloom.errors import ConfigurationError, InputError, StorageUnavailableError
from topicloom.graph.deps import choose_models, default_folder, make_deps
from topicloom.roles.models import get_model_name
from topicloom.roles.registry import Roles
from topicloom.settings import Settings
from topicloom.state.session import Session
from topicloom.storage.disk import make_folder, reachable
from topicloom.storage.files import FileStorage
from topicloom.storage.names import check_session_name
from topicloom.storage.sessions import SessionStore

_CHECKPOINTS, _KEPT = "checkpoints.sqlite", "store.sqlite"


@dataclass(frozen=True, slots=True)
class CliContext:
    """A folder of sessions: their storage, a file with their checkpoints, one for reflection."""

    settings: Settings
    folder: Path
    storage: FileStorage

    @contextmanager
    def checkpoints(self) -> Iterator[SqliteSaver]:
        """The checkpoints of all sessions.

        Raises:
            StorageUnavailableError: The file cannot be read or written.
        """
        with self._database(_CHECKPOINTS) as database:
            yield SqliteSaver(database)

    @contextmanager
    def kept(self) -> Iterator[SqliteStore]:
        """What reflection keeps of all sessions.

        Raises:
            StorageUnavailableError: The file cannot be read or written.
        """
        with self._database(_KEPT) as database:
            database.isolation_level = None  # the store begins and ends transactions itself
            store = SqliteStore(database)
            store.setup()
            yield store

    @contextmanager
    def _database(self, name: str) -> Iterator[sqlite3.Connection]:
        path = where = self.folder / name
        with reachable(self.folder):
            make_folder(self.folder, fsync=False)
        try:
            with closing(sqlite3.connect(path, check_same_thread=False, timeout=30.0)) as database:
                database.execute("PRAGMA schema_version")  # finds out a file that is no database
                where = self.folder  # of several that are open, nobody knows which one it is
                yield database
        except sqlite3.Error as error:
            raise StorageUnavailableError(
                f"cannot use {where}: {error}. Choose another folder with --folder"
            ) from error

    def read(self, name: str) -> tuple[Session, SessionStore]:
        """A session as its newest checkpoint has it, with its storage.

        Raises:
            InvalidNameError: The name cannot name a session.
            InputError: There is no such session.
        """
        check_session_name(name)
        session = self.session(name)
        if session is None:
            known = ", ".join(self.storage.sessions()) or "none yet"
            raise InputError(f"there is no session {name!r} in {self.folder} (there: {known})")
        return session, SessionStore(self.storage.open(name))

    def session(self, name: str) -> Session | None:
        """A session as its newest checkpoint has it; None if there is none."""
        if not (self.folder / _CHECKPOINTS).exists():
            return None
        with self.checkpoints() as saver:
            return load_session(saver, make_thread_config(name))


def open_context(given: CliOptions) -> CliContext:
    """The folder that was asked for, with the settings of the environment.

    Raises:
        ConfigurationError: A setting or the folder cannot be used.
    """
    settings = read_settings()
    changes = {"folder": given.folder, "language": given.language}
    settings = settings.model_copy(update={k: v for k, v in changes.items() if v is not None})
    return context_in(settings.folder or default_folder(), settings)


def context_in(folder: Path, settings: Settings) -> CliContext:
    """A workplace in a folder."""
    return CliContext(settings, folder, FileStorage(folder, fsync=settings.fsync))


def read_settings() -> Settings:
    """The settings of the environment.

    Raises:
        ConfigurationError: One of them is not what it should be; the message names it.
    """
    try:
        return Settings()
    except ValidationError as error:
        problem = error.errors()[0]
        variable = "__".join(["TOPICLOOM", *map(str, problem["loc"])]).upper()
        variable = variable.replace("TOPICLOOM__", "TOPICLOOM_", 1)
        raise ConfigurationError(
            f"{variable} cannot be used: {problem['msg']}, not {problem['input']!r}"
        ) from error
    except SettingsError as error:
        raise ConfigurationError(f"a TOPICLOOM_ variable cannot be used: {error}") from error


def make_thread_config(name: str) -> RunnableConfig:
    """The configuration that names a session's thread."""
    return {"configurable": {"thread_id": name}}


def load_session(saver: SqliteSaver, config: RunnableConfig) -> Session | None:
    """The session that a checkpoint holds; None if there is no such checkpoint."""
    found = saver.get_tuple(config)
    value = found.checkpoint["channel_values"].get("session") if found else None
    return Session.model_validate(value) if value else None


def find_reply_model(settings: Settings) -> str | None:
    """The model that writes replies; None for the embedded default."""
    model = choose_models(settings, None, None, None).of("responder")
    return model if model is None or isinstance(model, str) else get_model_name(model)


def describe_model(settings: Settings) -> str:
    """Says what replies, and how that is changed."""
    model = find_reply_model(settings)
    if model is not None:
        return f"model {model}"
    return (
        "no model is set: replies only quote what was said. For a real one set"
        " TOPICLOOM_MODEL=openai:gpt-5-mini and OPENAI_API_KEY"
    )


def open_roles(place: CliContext) -> Roles:
    """The roles that a graph with the place's settings makes itself.

    Raises:
        ConfigurationError: A model cannot be opened.
    """
    models = choose_models(place.settings, None, None, None)
    return make_deps(place.settings, models, storage=place.storage).roles
