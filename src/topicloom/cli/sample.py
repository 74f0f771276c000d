"""The packaged sample as a session: replayed once, kept in the user's cache folder, and copied.

    <cache>/sample/<key>/files.json              what it holds, with a hash of each file
                         checkpoints.sqlite, ...  the folder of sessions
    <cache>/sample/.lock                         held while a copy is made or taken

The key stands for the code, the sample, the bundled models and the settings, so that a newer
version or another setting replays it again. What is damaged is replayed again too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from filelock import FileLock, Timeout
from langgraph.store.sqlite import SqliteStore
from platformdirs import user_cache_path
from rich.console import Console

from topicloom.cli.console import print_dim
from topicloom.cli.context import CliContext, open_roles
from topicloom.cli.replay import feed_recording, open_small
from topicloom.errors import StorageUnavailableError
from topicloom.graph.checkpoints import LocalCheckpointer
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.nodes.runs import name_thread
from topicloom.recordings.replay import load_first_conversation
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.settings import Settings
from topicloom.storage.disk import make_folder, reachable

_PACKAGE = Path(str(files("topicloom")))
_FILES = "files.json"
_MOST = 4
"""Replays that are kept: one for each way in which the settings were of late."""
_PRIVATE = {"api_key", "role_api_keys", "folder"}
"""Settings that change nothing of the sample, or are secret."""


@contextmanager
def open_sample(
    context: CliContext, console: Console, sample: Path, cache: Path | None = None
) -> Iterator[tuple[CompiledSessionGraph, LocalCheckpointer, SqliteStore]]:
    """The graph over a copy of a replayed sample, with a window so small that it has topics.

    Args:
        context: Its settings are those of the graph; its folder is left alone.
        console: Where it is said that the sample is being replayed.
        sample: The recording, whose name is that of the session.
        cache: Where the replayed sample is kept; the user's cache folder if not given. If it
            cannot be used, the sample is replayed each time.
    """
    with open_small(context) as small:
        kept = (cache or user_cache_path("topicloom")) / "sample" / make_key(small.settings, sample)
        ready = False
        try:
            with _hold(kept.parent, console):
                ready = _take(kept, small.folder)
                if not ready:
                    _replay(small, console, sample)
                    ready = True
                    _keep(small.folder, kept)
        except StorageUnavailableError as error:
            print_dim(console, "the sample is not kept for the next start: {error}", error=error)
        if not ready:
            _replay(small, console, sample)
        with small.open_graph() as opened:
            yield opened


def make_key(settings: Settings, sample: Path) -> str:
    """A name for all that decides how the replayed sample looks."""
    decides = sha256(repr(settings.model_dump(exclude=_PRIVATE)).encode())
    code = [file for file in _PACKAGE.rglob("*") if "__pycache__" not in file.parts]
    for file in (sample, *sorted(code)):
        seen = file.stat()
        decides.update(repr((str(file), seen.st_size, seen.st_mtime_ns)).encode())
    return decides.hexdigest()[:16]


@contextmanager
def _hold(folder: Path, console: Console) -> Iterator[None]:
    """Hold the lock of a cache folder; while another start has it, that is said and waited for."""
    with reachable(folder):
        make_folder(folder, fsync=False)
        lock = FileLock(folder / ".lock", mode=0o600)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print_dim(console, "another start is preparing the sample: waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _replay(context: CliContext, console: Console, sample: Path) -> None:
    """Replay the sample into the folder of a context, which is empty."""
    print_dim(
        console,
        "preparing the sample: about 20 seconds, only at this first start",
    )
    roles = open_roles(context)
    recorded = RecordedResponder(otherwise=roles[RESPONDER])
    conversation = load_first_conversation(sample, None)
    with context.open_graph(roles.replace(RESPONDER, recorded)) as (graph, *_):
        thread = name_thread(sample.stem)
        feed_recording(console, graph, recorded, conversation, thread)


def _take(kept: Path, folder: Path) -> bool:
    """Copy what is kept into an empty folder; False, and a folder that is empty, if it is damaged
    or not there."""
    with suppress(OSError, ValueError):
        wanted = json.loads((kept / _FILES).read_text("utf-8"))
        shutil.copytree(kept, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_FILES))
        if _hash_files(folder) == wanted:
            return True
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    return False


def _keep(folder: Path, kept: Path) -> None:
    """Keep a copy of a folder, whole or not at all; the caller holds the lock."""
    with reachable(kept):
        for old in (*_list_oldest(kept.parent)[: 1 - _MOST], kept):
            shutil.rmtree(old, ignore_errors=True)
        unfinished = kept.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(folder, unfinished)
        (unfinished / _FILES).write_text(json.dumps(_hash_files(folder)), "utf-8")
        unfinished.rename(kept)


def _list_oldest(folder: Path) -> list[Path]:
    """What is kept in a cache folder, the oldest first."""
    kept = [path.parent for path in folder.glob(f"*/{_FILES}")]
    return sorted(kept, key=lambda path: path.stat().st_mtime)


def _hash_files(folder: Path) -> Mapping[str, str]:
    """A hash of each file in a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
