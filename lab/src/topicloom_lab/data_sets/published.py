"""Reading what others publish: one conversation is held at a time, however large the file."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from topicloom import InputError, NotAConversationError
from topicloom_app.recordings.json_stream import read_entries
from topicloom_lab.data_sets.catalogue import DATA_SETS
from topicloom_lab.data_sets.rows import Row


@dataclass(frozen=True, slots=True)
class Published:
    """One conversation as it is published."""

    data_set: str
    name: str
    """Of its file or folder, with its place where there are more in it."""
    value: Any

    def convert(self) -> Row:
        """The conversation as ours, with its questions.

        Raises:
            NotAConversationError: It is not of that data set's form, or that is not converted.
        """
        known = DATA_SETS[self.data_set]
        if known.convert is None:
            raise NotAConversationError(
                "{name} is not converted: {home} has its form", name=self.data_set, home=known.home
            )
        return self._apply(known.convert)

    def label(self) -> Row:
        """The conversation with the topic of each message.

        Raises:
            InputError: The data set does not know topics.
            NotAConversationError: It is not of that data set's form.
        """
        return self._apply(find_label(self.data_set))

    def _apply(self, make: Callable[[Any, str], Row]) -> Row:
        try:
            return make(self.value, self.name)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _refuse(self.data_set, error) from error


def find_label(name: str) -> Callable[[Any, str], Row]:
    """The function that finds the topic of each message; raises `InputError` if there is none."""
    if (label := DATA_SETS[name].label) is None:
        known = ", ".join(name for name, one in DATA_SETS.items() if one.label)
        raise InputError(
            "{name} does not say which topic a message is in; {known} does", name=name, known=known
        )
    return label


def read_published(name: str, path: Path) -> Iterator[Published]:
    """The conversations of a published file, or of a folder of a data set with `parts`.

    Args:
        name: The data set.
        path: The file, JSON or a JSON value a line, as it is or packed as `.xz`; or the folder.

    Raises:
        NotAConversationError: It cannot be read, or is no JSON.
    """
    known = DATA_SETS[name]
    if parts := known.parts:
        if not path.is_dir():
            raise NotAConversationError(
                "{path} is no folder: {name} is published in folders, with {parts}",
                path=path,
                name=name,
                parts=", ".join(parts),
            )
        folder = {Path(part).stem: list(_read_file(name, path / part)) for part in parts}
        yield from (Published(name, path.resolve().name, one) for one in known.split(folder))
        return
    values = _read_file(name, path)
    first = list(islice(values, 2))
    if not first:
        raise _refuse(name, ValueError("it is empty"))
    for number, value in enumerate(chain(first, values), start=1):
        yield Published(name, f"{path.stem}-{number}" if len(first) > 1 else path.stem, value)


def _read_file(name: str, path: Path) -> Iterator[Any]:
    try:
        with _open(path) as file:
            for entry in read_entries(file, lambda _: False):
                if isinstance(entry.value, NotAConversationError):
                    raise _refuse(name, entry.value)
                yield entry.value
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise NotAConversationError(
            "{path} cannot be read: {error}", path=path, error=error
        ) from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _refuse(name: str, error: Exception) -> NotAConversationError:
    return NotAConversationError(
        "this is no file of {name} ({kind}: {error}): {home} has those that are",
        name=name,
        kind=type(error).__name__,
        error=error,
        home=DATA_SETS[name].home,
    )
