"""Make gettext's binary catalogues from the `.po` files: `python scripts/translations.py`.

Translators edit the `.po` files; commands read the `.mo` files beside them, which are committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

ROOT = Path(__file__).parent.parent
FOLDERS = (
    ROOT / "app" / "src" / "topicloom_app" / "cli" / "locale",
    ROOT / "lab" / "src" / "topicloom_lab" / "cli" / "locale",
)


def find_catalogues() -> Iterator[Path]:
    """The `.po` files."""
    for folder in FOLDERS:
        yield from sorted(folder.glob("*/LC_MESSAGES/*.po"))


def read_catalogue(file: Path) -> Catalog:
    """The catalogue of a `.po` file; an error if it cannot be parsed."""
    with file.open("rb") as stream:
        return read_po(stream, abort_invalid=True)


def compile_catalogue(file: Path) -> bytes:
    """What the `.mo` file of a `.po` file holds."""
    made = BytesIO()
    write_mo(made, read_catalogue(file))
    return made.getvalue()


def main() -> None:
    """Write every `.mo` file."""
    for file in find_catalogues():
        out = file.with_suffix(".mo")
        out.write_bytes(compile_catalogue(file))
        print(f"{out.relative_to(ROOT)}: {len(read_catalogue(file))} texts")


if __name__ == "__main__":
    main()
