"""The picture of the session graph: its nodes and labelled edges, as Graphviz lays them out."""

from __future__ import annotations

import re
import subprocess

from langchain_core.runnables.graph import Edge, Graph
from langchain_core.tools import tool
from scripts.generate.files import ROOT

from topicloom import build_session_graph

PATH = ROOT / "docs" / "images" / "graph.svg"
PHASES = {
    "take in": ["reconcile", "ingest", "apply_changes", "estimate", "split"],
    "remember": ["retrieve", "amnesia", "read_topic", "assemble", "activate_topic"],
    "answer": ["main_generate", "tools", "finalize"],
}
MAIN = {
    ("__start__", "ingest"),
    ("ingest", "estimate"),
    ("estimate", "retrieve"),
    ("estimate", "split"),
    ("split", "retrieve"),
    ("retrieve", "read_topic"),
    ("read_topic", "assemble"),
    ("assemble", "main_generate"),
    ("main_generate", "finalize"),
    ("finalize", "__end__"),
}
"""The steps of a turn of a long conversation; other edges are drawn lightly."""
BACK = {
    ("tools", "main_generate"),
    ("main_generate", "activate_topic"),
    ("main_generate", "estimate"),
}
"""Edges that lead back."""
COLOURS = {"take in": "#e8f1fb", "remember": "#fdf3dc", "answer": "#e6f5e9"}
STYLE = """
    rankdir=TB; nodesep=0.3; ranksep=0.4; fontname=Helvetica; bgcolor=white;
    node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=13];
    edge [fontname=Helvetica, fontsize=10, color="#555555", fontcolor="#444444", arrowsize=0.7];
"""


@tool
def your_tool() -> str:
    """A tool of the application, so that the picture shows where tools run."""
    return ""


def is_current() -> bool:
    """True if the picture has the graph's nodes, edges and labels, wherever they stand in it."""
    picture, graph = PATH.read_text("utf-8"), _open_graph()
    edges = set(re.findall(r"<title>(\w+)&#45;&gt;(\w+)</title>", picture))
    labels = {str(e.data) for e in graph.edges if e.data}
    names = {name for name in graph.nodes if not name.startswith("__")}
    texts = set(re.findall(r"<text [^>]*>\s*(.*?)\s*</text>", picture))
    return edges == {(e.source, e.target) for e in graph.edges} and texts >= labels | names


def draw() -> None:
    """Write the picture. Needs `dot`, a program of Graphviz."""
    command = ["dot", "-Tsvg", "-o", str(PATH)]
    subprocess.run(command, input=_describe(_open_graph()), text=True, check=True)


def _open_graph() -> Graph:
    return build_session_graph(tools=[your_tool]).compile().get_graph()


def _describe(graph: Graph) -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph {", STYLE]
    lines += [
        '__start__ [label="message", shape=plain];',
        '__end__ [label="receipt", shape=plain];',
    ]
    for phase, nodes in PHASES.items():
        colour, side = COLOURS[phase], "l" if phase == "remember" else "r"
        lines.append(
            f'subgraph "cluster_{phase}" {{ label="{phase}"; labeljust={side}; fontsize=16;'
        )
        lines.append(f'style="rounded,filled"; color="{colour}"; fillcolor="{colour}";')
        lines += [f"{name};" for name in nodes]
        lines.append("}")
    left_out = (
        set(graph.nodes)
        - {"__start__", "__end__"}
        - {n for nodes in PHASES.values() for n in nodes}
    )
    if left_out:
        raise ValueError(f"no phase for {sorted(left_out)}")
    lines += [f"{e.source} -> {e.target} [{_looks(e)}];" for e in graph.edges]
    return "\n".join([*lines, "}"])


def _looks(edge: Edge) -> str:
    """Attributes of an edge: what every turn does stands out, and only that sets the order."""
    label = f'label=" {edge.data} "' if edge.data else ""
    back = "constraint=false" if (edge.source, edge.target) in BACK else ""
    light = "" if (edge.source, edge.target) in MAIN else 'style=dashed, color="#999999"'
    return ", ".join(part for part in (label, back, light) if part)
