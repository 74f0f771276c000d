"""`topicloom eval fetch`, `convert` and `generate`: writing conversations to measure on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

from rich.text import Text

from topicloom import ConfigurationError, InputError, count_budget_tokens
from topicloom.lab import suggest
from topicloom_app.cli.console import count_of, open_console, print_dim
from topicloom_lab.cli.output import write_lines, write_rows
from topicloom_lab.data_sets import DATA_SETS, DataSet, find_label, read_published
from topicloom_lab.generators import generate

_SECONDS = 60.0
"""Time that a server may take for the next piece of a file."""


def list_data_sets() -> None:
    """Print the data sets with their licences, homes and who to cite."""
    console = open_console()
    for name, known in DATA_SETS.items():
        how = f"topicloom eval convert {name}" if known.convert else "not converted"
        how = f"topicloom eval fetch {name}" if known.files else how
        head = Text.assemble((f"{name} ", "bold"), known.what, (f" · {known.licence}", "yellow"))
        told = Text(f"    {known.home} · {how}\n    cite {known.citation}", style="dim")
        console.print(head, told, sep="\n")


def run_fetch(name: str, out: Path, first: int | None, threads: Path | None) -> None:
    """Download a data set and write it in our form.

    Raises:
        InputError: It cannot be downloaded, or knows no topics for `threads`.
        NotAConversationError: What was downloaded is not of its form.
    """
    known = _find(name, threads)
    if not known.files:
        raise InputError(
            "{name} is not fetched: take it from {home} ({licence})",
            name=name,
            home=known.home,
            licence=known.licence,
        )
    with TemporaryDirectory() as folder:
        paths = (_download(address, known, Path(folder)) for address in known.files)
        _write(name, paths, out, first, threads)


def run_convert(
    name: str, files: Sequence[Path], out: Path, first: int | None, threads: Path | None
) -> None:
    """Write files of a data set in our form.

    Raises:
        InputError: The data set knows no topics for `threads`.
        NotAConversationError: They are not of its form.
    """
    _find(name, threads)
    _write(name, files, out, first, threads)


def _find(name: str, threads: Path | None) -> DataSet:
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise ConfigurationError(
            "no data set {name!r}{meant}; there: {known}",
            name=name,
            meant=suggest(name, DATA_SETS),
            known=known,
        )
    if threads is not None:
        find_label(name)  # before anything is downloaded
    return DATA_SETS[name]


def _download(address: str, known: DataSet, folder: Path) -> Path:
    """Download a file, or the parts of a folder, and say where they are now."""
    path = folder / address.rsplit("/", 1)[-1]
    if not known.parts:
        _copy(address, path)
    for part in known.parts:
        (path / part).parent.mkdir(parents=True, exist_ok=True)
        _copy(f"{address}/{part}", path / part)
    return path


def _copy(address: str, path: Path) -> None:
    try:
        with urlopen(address, timeout=_SECONDS) as answer, path.open("wb") as file:
            copyfileobj(answer, file)
    except (URLError, OSError) as error:
        raise InputError(
            "{address} cannot be fetched: {error}. Download it otherwise, and `topicloom eval"
            " convert` does the rest",
            address=address,
            error=error,
        ) from error


def _write(
    name: str, paths: Iterable[Path], out: Path, first: int | None, threads: Path | None
) -> None:
    published = chain.from_iterable(read_published(name, path) for path in paths)
    conversations = questions = 0
    labelled = list[Mapping[str, object]]()

    def convert() -> Iterator[Mapping[str, object]]:
        nonlocal conversations, questions
        for one in islice(published, first):
            row = one.convert()
            conversations += 1
            questions += len(row["questions"])
            if threads is not None:
                labelled.append(one.label())
            yield row

    write_rows(out, convert())
    console, known = open_console(), DATA_SETS[name]
    found = f"{count_of(conversations, 'conversation')}, {count_of(questions, 'question')}"
    print_dim(console, f"{out}: {found}. {known.home}; {known.licence}; cite {known.citation}")
    if threads is not None:
        write_rows(threads, labelled)
        print_dim(console, f"{threads}: the topic of each message")


def run_generate(spec: str, out: Path) -> None:
    """Write the conversations of a specification, one at a time, and say what they are.

    Raises:
        InputError: If the specification cannot be followed.
        NotAConversationError: If a file that the generator reads holds something else.
        StorageUnavailableError: If the file cannot be written.
    """
    made = generate(spec)
    conversations = messages = questions = tokens = 0

    def count() -> Iterator[str]:
        nonlocal conversations, messages, questions, tokens
        for conversation in made:
            conversations += 1
            messages += len(conversation.messages)
            questions += len(conversation.questions)
            tokens += sum(count_budget_tokens(m.text) for m in conversation.messages)
            yield conversation.model_dump_json(exclude_none=True)

    write_lines(out, count())
    open_console().print(
        f"{out}: {conversations:,} conversations, {messages:,} messages, {tokens:,} tokens,"
        f" {questions:,} questions"
    )
