"""Docs, notebooks and benchmarks use public names alone, and the lists of these agree."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest
from tables import each_row

import topicloom
import topicloom.testing
import topicloom_app
from topicloom.roles.registry import ROLES

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = {
    module.__name__: set(module.__all__) for module in (topicloom, topicloom.testing, topicloom_app)
}


def code() -> Iterator[tuple[str, str]]:
    """Code that readers copy, by where it stands."""
    for page in PAGES:
        for number, text in enumerate(
            re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        ):
            yield f"{page.name}-{number}", dedent(text)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        yield notebook.name, "\n".join(sources)
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        yield path.name, path.read_text("utf-8")


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Modules and names that some code imports; "" for a module itself."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, "") for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((module, alias.name) for alias in names)


@each_row(("place", "text"), code())
def test_code_for_readers_imports_public_names(place: str, text: str) -> None:
    private = [
        f"{module} {name}"
        for module, name in imported(text)
        if module.split(".")[0] in ("topicloom", "topicloom_app")
        if name not in PUBLIC.get(module, set()) and (module, name) != ("topicloom", "")
        if (module, name) != ("topicloom", "testing")
    ]
    assert not private


def test_code_for_readers_names_modules_that_are_there() -> None:
    ours = {(m, n) for _, t in code() for m, n in imported(t) if m.startswith("topicloom")}
    missing = [f"{m} {n}" for m, n in ours if n and not hasattr(import_module(m), n)]
    assert ours
    assert not missing


@each_row("path", sorted((ROOT / "notebooks").glob("*.ipynb")))
def test_notebooks_show_what_they_print(path: Path) -> None:
    text = path.read_text("utf-8")
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert len(outputs) >= 4
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    assert not re.search(r"/home/|/tmp/|/work/|topicloom_lab", text)


def homes() -> dict[str, str]:
    """Where type checkers look for each public name, and where it is loaded from."""
    tree = ast.parse(Path(str(topicloom.__file__)).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {a.name: f"topicloom.{node.module}" for node in imports for a in node.names}


def test_type_checkers_see_what_is_there() -> None:
    assert sorted(homes()) == sorted(topicloom.__all__)


def test_every_public_name_stands_once_in_a_group() -> None:
    groups = topicloom.__doc__.partition("\n\n")[2].partition("\n\n")[2]
    lines = [line.split() for line in groups.splitlines() if line.startswith("    ")]
    named = [name for line in lines if set(line) <= PUBLIC["topicloom"] for name in line]
    assert sorted(named) == sorted(topicloom.__all__)


def test_every_role_is_public() -> None:
    assert {name.upper() for name in ROLES} <= PUBLIC["topicloom"]


def test_every_public_name_is_documented_and_defined_where_it_is_taken_from() -> None:
    for name, home in homes().items():
        value = getattr(topicloom, name)
        assert value is getattr(import_module(home), name)
        if inspect.isfunction(value) or (inspect.isclass(value) and value is not str):
            assert (value.__module__, bool(value.__doc__)) == (home, True), name


def test_no_public_name_is_that_of_a_module() -> None:
    modules = {path.stem for path in Path(str(topicloom.__file__)).parent.iterdir()}
    assert not modules & PUBLIC["topicloom"]


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="attribute nonsense"):
        topicloom.nonsense  # type: ignore[attr-defined]  # noqa: B018
