"""Nothing in the package runs or unpacks what comes from outside as code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tables import each_row

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "app" / "src").rglob("*.py")])
MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
ARGUMENTS = {"allow_pickle", "allow_dangerous_deserialization", "trust_remote_code", "shell"}


def breaches(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names) if module in MODULES:
                # An error that another library raises may be named.
                yield from (module for n in names if not n.name.endswith("Error"))
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield f"{name}()"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="yaml"), attr="load" | "unsafe_load")
            ):
                yield "yaml.load()"
            case ast.keyword(arg=str(name), value=value) if name in ARGUMENTS:
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield f"{name}="


def test_no_source_runs_what_it_reads() -> None:
    assert len(SOURCES) > 100
    found = {str(path): list(breaches(ast.parse(path.read_text("utf-8")))) for path in SOURCES}
    assert not {path: what for path, what in found.items() if what}


@each_row(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "eval(text)",
        "np.load(file, allow_pickle=True)",
        "yaml.load(text)",
        "AutoModel.from_pretrained(name, trust_remote_code=flag)",
    ],
)
def test_it_would_be_seen(code: str) -> None:
    assert list(breaches(ast.parse(code)))
