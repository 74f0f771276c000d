"""`topicloom memory`: a session's topics as Markdown files."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import open_context
from topicloom.cli.memory_files import MemoryFiles


def run_memory(given: CliOptions, name: str, out: Path, *, force: bool) -> None:
    """Bring the memory files of a session up to date, and say what changed.

    Raises:
        InvalidNameError: The name cannot name a session.
        InputError: There is no such session.
        ConfigurationError: A folder cannot be used.
    """
    place, console = open_context(given), open_console()
    session, _ = place.read(name)
    report = MemoryFiles(out, place.storage).update(session, force=force)
    for file, why in report.left.items():
        console.print(Text(to_one_line(f"left {file} as it is: {why}"), style="yellow"))
    print_dim(
        console,
        f"{len(report.written)} written, {report.unchanged} unchanged, "
        f"{len(report.removed)} removed in {out}",
    )
    if report.left and not force:
        print_dim(console, "--force writes over what was edited")
