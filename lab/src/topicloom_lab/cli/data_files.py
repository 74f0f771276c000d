"""`topicloom eval fetch`, `convert` and `generate`: writing conversations to measure on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rich.text import Text

from topicloom.cli.console import count_of, open_console, print_dim
from topicloom.context.tokens import count_budget_tokens
from topicloom.errors import ConfigurationError, InputError, suggest
from topicloom.recordings.conversations import read_recording
from topicloom_lab.cli.output import write_lines, write_rows
from topicloom_lab.data_sets import DATA_SETS, DataSet, convert_file
from topicloom_lab.generators import generate

_SECONDS = 60.0
"""Time that a server may take for the next piece of a file."""


def list_data_sets() -> None:
    """Print the data sets with their licences and homes."""
    console = open_console()
    for name, known in DATA_SETS.items():
        how = f"topicloom eval fetch {name}" if known.files else "not converted"
        head = Text.assemble((f"{name:9}", "bold"), known.what, (f" · {known.licence}", "yellow"))
        console.print(head, Text(f"         {known.home} · {how}", style="dim"), sep="\n")


def run_fetch(name: str, out: Path, first: int | None) -> None:
    """Download a data set and write it in our form; raises `InputError` if that cannot be done."""
    known = _find(name)
    if not known.files:
        raise InputError(f"{name} is not fetched: take it from {known.home} ({known.licence})")
    texts = ((Path(address).stem, _download(address)) for address in known.files)
    _write(name, texts, out, first)


def run_convert(name: str, files: Sequence[Path], out: Path, first: int | None) -> None:
    """Write files of a data set in our form; raises `NotAConversationError` if they are not."""
    _find(name)
    _write(name, ((path.stem, read_recording(path)) for path in files), out, first)


def _find(name: str) -> DataSet:
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise ConfigurationError(f"no data set {name!r}{suggest(name, DATA_SETS)}; there: {known}")
    return DATA_SETS[name]


def _download(address: str) -> str:
    try:
        with urlopen(address, timeout=_SECONDS) as answer:
            return bytes(answer.read()).decode("utf-8")
    except (URLError, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{address} cannot be fetched: {error}. Download it otherwise, and"
            " `topicloom eval convert` does the rest"
        ) from error


def _write(name: str, texts: Iterable[tuple[str, str]], out: Path, first: int | None) -> None:
    converted = chain.from_iterable(convert_file(name, text, stem) for stem, text in texts)
    rows = list(islice(converted, first))
    write_rows(out, rows)
    known, asked = DATA_SETS[name], sum(len(row["questions"]) for row in rows)
    print_dim(
        open_console(),
        f"{out}: {count_of(len(rows), 'conversation')}, {count_of(asked, 'question')}."
        f" {known.home}; {known.licence}",
    )


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
