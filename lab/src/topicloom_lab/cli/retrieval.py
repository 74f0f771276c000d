"""`topicloom eval retrieval`: whether the right text comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from topicloom.cli.console import open_console, print_json
from topicloom.index.encoders import open_embedder
from topicloom_lab.cli.output import counting, make_table
from topicloom_lab.retrieval import WAYS, Found, evaluate_retrieval, load_retrieval


def run_retrieval(files: Sequence[Path], encoder: str | None, *, as_json: bool = False) -> None:
    """Measure on some files, and print the figures by file and way.

    Raises:
        NotAConversationError: If a file holds something else.
        ConfigurationError: If the encoder or its library is missing.
    """
    console = open_console(quiet=as_json)
    given = {file: load_retrieval(file) for file in files}
    embedder = open_embedder(encoder)
    found: dict[str, dict[str, Found]] = {}
    for file, sets in given.items():
        with counting(console, file.name, len(sets.docs) + len(sets.queries)) as progress:
            found[file.name] = evaluate_retrieval(sets, embedder, progress)
    heads = ("file", "texts", "queries", *WAYS)
    lines = [
        [
            file.name,
            str(len(sets.docs)),
            str(len(sets.queries)),
            *(
                f"{found[file.name][way].mrr:.3f} ({found[file.name][way].recall:.2f})"
                for way in WAYS
            ),
        ]
        for file, sets in given.items()
    ]
    title = "MRR (recall at 10)"
    console.print(make_table(title, heads, lines, f"encoder: {embedder.fingerprint}"))
    if as_json:
        print_json(
            {"file": file, "way": way, **asdict(figures)}
            for file, ways in found.items()
            for way, figures in ways.items()
        )
