"""Imports point one way: what is decided knows nothing of what is done with it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from tables import each_row

from topicloom import hosting

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "topicloom"
APP = ROOT / "app" / "src" / "topicloom_app"
LAB = ROOT / "lab" / "src" / "topicloom_lab"

LAYERS = (
    {"texts"},
    {"errors", "background", "effects", "extras"},
    {"state"},
    {"telemetry"},
    {"prompts"},
    {"context", "storage"},
    {"search"},
    {"topics"},
    {"roles"},
    {"reflection"},
    {"nodes"},
    {"review", "domain"},
    {"settings"},
    {"graph"},
    {"memory"},
    {"app"},
    {"testing"},
    {"hosting", "lab"},
    {"__init__"},
)
"""Each may import what stands before it, and nothing beside it or after it."""

UPWARDS = {("nodes", "settings")}
"""`nodes/deps.py` carries the settings, which gather the policies of all folders."""


@cache
def modules(folder: Path) -> list[tuple[str, ast.Module]]:
    """Every module of a package by its full name, parsed."""
    found = []
    for path in folder.rglob("*.py"):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        found.append((name.removesuffix(".__init__"), ast.parse(path.read_text("utf-8"))))
    return found


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that some code imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module


def part(module: str) -> str:
    """The folder, or the single module, of the package that a module belongs to."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def test_every_folder_has_its_layer() -> None:
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or _is_package(path)}
    assert there == set().union(*LAYERS)


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()


def test_imports_point_one_way() -> None:
    layer = {name: number for number, names in enumerate(LAYERS) for name in names}
    found = {
        (part(module), part(other))
        for module, tree in modules(SOURCE)
        for other in imports(tree)
        if other.startswith("topicloom.") and part(module) != part(other)
    }
    assert {(a, b) for a, b in found if layer[b] >= layer[a]} == UPWARDS


def test_state_imports_nothing_of_ours_but_errors_and_texts() -> None:
    found = {
        part(other)
        for module, tree in modules(SOURCE)
        for other in imports(tree)
        if part(module) == "state" and other.startswith("topicloom.")
    }
    assert found - {"state"} == {"errors", "texts"}


@each_row("package", [SOURCE, APP, LAB])
def test_modules_form_no_circle(package: Path) -> None:
    at_once = (ast.Import, ast.ImportFrom)  # not those for types, nor those within functions
    needed = {
        name: {other for node in tree.body if isinstance(node, at_once) for other in imports(node)}
        for name, tree in modules(package)
    }
    TopologicalSorter({name: others & needed.keys() for name, others in needed.items()}).prepare()


def test_the_library_imports_nothing_of_the_others() -> None:
    found = [m for m, tree in modules(SOURCE) for o in imports(tree) if o.startswith("topicloom_")]
    assert not found


def test_the_others_import_public_names() -> None:
    public = {"topicloom", "topicloom.testing", "topicloom.hosting", "topicloom.lab"}
    found = {
        (module, other)
        for folder in (APP, LAB)
        for module, tree in modules(folder)
        for other in imports(tree)
        if other.partition(".")[0] == "topicloom" and other not in public
    }
    assert not found


APART = (
    "topicloom_app",
    "topicloom_lab",
    "dateparser",
    "mcp",
    "prompt_toolkit",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
)
"""The other distributions, and what they alone bring along."""


@pytest.mark.slow
def test_the_library_runs_without_the_others(tmp_path: Path) -> None:
    """Every module is imported, and a turn is made, where none of these packages is there."""
    code = f"""
import sys
from importlib import import_module
sys.modules |= dict.fromkeys({APART!r})
optional = {{"topicloom.graph.postgres"}}  # it needs an extra
for module in {[name for name, _ in modules(SOURCE)]!r}:
    if module not in optional:
        import_module(module)
from topicloom import build_session_graph, local_checkpointer
graph = build_session_graph().compile(checkpointer=local_checkpointer())
turn = graph.invoke({{"messages": "Hello!"}}, {{"configurable": {{"thread_id": "t"}}}})
print(turn["messages"][-1].content)
"""
    environment = os.environ | {"TOPICLOOM_FOLDER": str(tmp_path)}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Kept."), done.stderr


def test_hosting_has_no_more_than_the_application_uses() -> None:
    used = {
        alias.name
        for _, tree in modules(APP)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "topicloom.hosting"
        for alias in node.names
    }
    assert set(hosting.__all__) == used


def test_nothing_private_of_a_dependency_is_imported() -> None:
    private = [
        f"{module}: {other}"
        for folder in (SOURCE, APP, LAB)
        for module, tree in modules(folder)
        for other in [*imports(tree), *_names(tree)]
        if any(name.startswith("_") and not name.startswith("__") for name in other.split("."))
        if not other.startswith(("topicloom.", "topicloom_app.", "topicloom_lab."))
    ]
    assert not private


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_document_lists_the_folders_in_the_order_of_their_layers() -> None:
    page = (ROOT / "docs" / "concepts" / "architecture.md").read_text("utf-8")
    table = page.partition("## The folders")[2].partition("\n\n`graph`")[0]
    folders = [{n for n in names if _is_package(SOURCE / n)} for names in reversed(LAYERS)]
    places = [{table.index(f"`{name}/`") for name in names} for names in folders if names]
    assert all(max(above) < min(below) for above, below in pairwise(places))
