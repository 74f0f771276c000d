"""Copies of topics that people can read and grep. The program writes them and never reads them.

    topics/topic-t1.jsonl                     an open topic
    topics/archived/2026-03/topic-t2.jsonl    an archived one

The first line has the topic's name, state, brief and summary, and each further line a message as it
is in view. Nothing depends on these files: whoever edits or deletes one damages nothing, and it is
written anew when its topic changes. A purge writes those anew that had any of what is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from topicloom.errors import StorageError
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.chain import encode_json
from topicloom.storage.disk import make_folder, reachable, replace_file
from topicloom.storage.message_rows import to_row

_log = logging.getLogger("topicloom.storage")
_SHOWN = ("id", "name", "status", "brief", "summary")


class TopicFiles:
    """The copies of one session's topics. The caller holds the session's lock."""

    def __init__(self, folder: Path) -> None:
        """Copies in a folder, which is made when the first one is written."""
        self._folder = folder
        self.session: Session | None = None
        """The session that the files show, as far as this process knows."""

    def write(
        self, topics: Iterable[Topic], read: Callable[[Topic], Sequence[StoredMessage]]
    ) -> None:
        """Write the files of topics; those without messages get none.

        What cannot be read or written is left out: the log `topicloom.storage` says so.
        """
        for topic in topics:
            try:
                path = self._find(topic)
                self.remove(topic.id, but=path if topic.count else None)
                if topic.count:
                    make_folder(path.parent, fsync=False)
                    replace_file(path, _render(topic, read(topic)), fsync=False)
            except (OSError, StorageError):
                _log.warning("the file of topic %s cannot be written", topic.id, exc_info=True)

    def remove(self, topic: str = "*", but: Path | None = None) -> None:
        """Remove the files of a topic, of all topics if none is named, and what a crash left.

        Raises:
            StorageUnavailableError: They cannot be removed.
        """
        with reachable(self._folder):
            for path in self._folder.glob(f"**/topic-{topic}.jsonl*"):
                if path != but:
                    path.unlink(missing_ok=True)

    def name(self, topic: Topic) -> str:
        """The file of a topic, as a path within the folder of its session."""
        return self._find(topic).relative_to(self._folder.parent).as_posix()

    def _find(self, topic: Topic) -> Path:
        archive = ("archived", topic.archived) if topic.status == "archived" else ()
        return self._folder.joinpath(*archive, f"topic-{topic.id}.jsonl")


def _render(topic: Topic, messages: Sequence[StoredMessage]) -> bytes:
    rows = [topic.model_dump(include=set(_SHOWN))]
    rows += [{k: v for k, v in to_row(m).items() if k not in ("seq", "query")} for m in messages]
    return b"".join(encode_json(row, "a copy") + b"\n" for row in rows)
