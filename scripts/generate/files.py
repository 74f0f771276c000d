"""A file that is generated: is it of today's code, and how is it made?"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
_SOURCE = re.compile(r" \(spec [^)]*\)")
"""The source of a figure in a docstring: of use beside the code, not on a page."""


@dataclass(frozen=True)
class Generated:
    """A file that is made from other files of the repository."""

    path: Path
    is_current: Callable[[], bool]
    write: Callable[[], object]


def make_page(path: str, make: Callable[[str], str]) -> Generated:
    """A text that is made from the code, and from itself where only a part of it is made."""
    file = ROOT / path

    def read() -> str:
        return file.read_text("utf-8")

    def is_current() -> bool:
        stands, made = read(), make(read())
        print(
            *unified_diff(stands.splitlines(), made.splitlines(), path, "made", lineterm="", n=0),
            sep="\n",
            end="",
        )
        return made == stands

    return Generated(file, is_current, lambda: file.write_text(make(read()), "utf-8"))


def replace_part(page: str, name: str, text: str) -> str:
    """A page with another text between the two remarks that name a part of it.

    Raises:
        ValueError: The page has no such remarks.
    """
    begin, end = f"<!-- {name}: made by bin/generate -->", f"<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page needs the lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"


def list_fields(kind: type) -> list[tuple[str, str, str]]:
    """Name, type and meaning of the fields that a class declares."""
    (body,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = []
    for statement, following in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), _ if not name.startswith("_"):
                found.append((name, ast.unparse(statement.annotation), read_docstring(following)))
    return found


def read_docstring(statement: ast.stmt) -> str:
    """The text of a docstring that stands below a field or an alias, in one line."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return join_lines(text)
    return ""


def join_lines(text: str) -> str:
    """A paragraph of a docstring as one line of a page."""
    return drop_sources(" ".join(text.split())).replace("|", "\\|")


def drop_sources(text: str) -> str:
    """A docstring without the sources of its figures."""
    return _SOURCE.sub("", text)
