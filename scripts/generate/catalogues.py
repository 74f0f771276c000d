"""Gettext's binary catalogues, which commands read, made from the `.po` files of translators."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from scripts.generate.files import ROOT, Generated


def find_catalogues() -> list[Path]:
    """The `.po` files of the application and of the laboratory."""
    return sorted(ROOT.glob("*/src/*/cli/locale/*/LC_MESSAGES/*.po"))


def read_catalogue(file: Path) -> Catalog:
    """The catalogue of a `.po` file; an error if it cannot be parsed."""
    with file.open("rb") as stream:
        catalogue = read_po(stream, abort_invalid=True)
    catalogue.creation_date = datetime(2026, 1, 1, tzinfo=UTC)  # not now, or no two are the same
    return catalogue


def list_compiled() -> list[Generated]:
    """The `.mo` file of each catalogue."""
    return [_compile(file, file.with_suffix(".mo")) for file in find_catalogues()]


def _compile(file: Path, out: Path) -> Generated:
    def make() -> bytes:
        made = BytesIO()
        write_mo(made, read_catalogue(file))
        return made.getvalue()

    return Generated(out, lambda: out.read_bytes() == make(), lambda: out.write_bytes(make()))
