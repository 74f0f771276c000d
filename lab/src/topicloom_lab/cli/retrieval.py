"""`topicloom eval retrieval`: whether the right text comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from topicloom import open_embedder
from topicloom_app.cli.console import open_console, print_json
from topicloom_lab.cli.output import counting, make_table
from topicloom_lab.retrieval import WAYS, Found, evaluate_retrieval, load_retrieval


def run_retrieval(files: Sequence[Path], encoder: str | None, *, as_json: bool) -> None:
    """Measure on some files, and print the figures by file and way.

    Raises:
        NotAConversationError: If a file holds something else.
        ConfigurationError: If the encoder or its library is missing.
    """
    console = open_console(quiet=as_json)
    given = {file: load_retrieval(file) for file in files}
    embedder = open_embedder(encoder)
    lines, rows = [], []
    for file, sets in given.items():
        sizes = len(sets.docs), len(sets.queries)
        with counting(console, file.name, sum(sizes)) as progress:
            found = evaluate_retrieval(sets, embedder, progress)
        figures = (_show(found[way]) for way in WAYS)
        lines.append((file.name, *map(str, sizes), *figures))
        rows += [{"file": file.name, "way": way} | asdict(found[way]) for way in WAYS]
    heads = ("file", "texts", "queries", *WAYS)
    title = "MRR (recall at 10; tokens of the ten, share of them that is of right texts)"
    console.print(make_table(title, heads, lines, f"encoder: {embedder.fingerprint}"))
    if as_json:
        print_json(rows)


def _show(found: Found) -> str:
    return f"{found.mrr:.3f} ({found.recall:.2f}; {found.shown:,.0f}, {found.precision:.3f})"
