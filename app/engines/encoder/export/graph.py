"""BERT as an ONNX graph, node by node: token ids in, one unit vector for each text out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from app.engines.encoder.export.quantization import LARGEST, quantized_columns, quantized_rows
from app.engines.encoder.export.source import Array

LAYERS = 6
HEADS = 12
HIDDEN = 384
EPSILON = 1e-12
SMALLEST = 1e-9
OPSET = 21
IR_VERSION = 10
HALF = 128
LOUD = {99: 8, 63: 4, 223: 4, 157: 2, 267: 2}
"""Dimensions of this model's hidden state that are several times larger than the others in every text, and powers of
two to divide them by before they set the step of all others in 8 bits; the next matrix is multiplied by the same."""


@dataclass
class Builder:
    """A graph in the making; ``int8`` decides how matrices are stored and multiplied."""

    weights: dict[str, Array]
    int8: bool
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Store ``value`` once under ``name``; return the name."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def number(self, value: float) -> str:
        """Return a float32 scalar."""
        return self.constant(f"number_{value!r}", np.array(value, dtype=np.float32))

    def shape(self, *sizes: int) -> str:
        """Return a constant shape or list of axes."""
        return self.constant("shape_" + "_".join(map(str, sizes)), np.array(sizes, dtype=np.int64))

    def norm(self, rows: str, name: str) -> str:
        """Add a layer normalization."""
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.op("LayerNormalization", rows, scale, bias, axis=-1, epsilon=EPSILON)

    def rows(self, name: str, ids: str) -> str:
        """Look the rows ``ids`` of an embedding up."""
        table = self.weights[f"{name}.weight"]
        if not self.int8:
            return self.op("Gather", self.constant(name, table), ids, axis=0)
        values, scales = quantized_rows(table)
        small = self.op("Gather", self.constant(f"{name}.int8", values), ids, axis=0)
        scale = self.op("Gather", self.constant(f"{name}.scale", scales[:, None]), ids, axis=0)
        return self.op("Mul", self.op("Cast", small, to=TensorProto.FLOAT), scale)

    def quantized(self, rows: str) -> tuple[str, str]:
        """Add the 8-bit form of activations and the size of each row: no row depends on its neighbours.

        A row is never all zero: layer norms and matrices add biases, also where a text is padded.
        """
        size = self.op("ReduceMax", self.op("Abs", rows), self.shape(-1), keepdims=1)
        return self.op(
            "QuantizeLinear", self.op("Div", rows, size), self.number(1 / LARGEST), self.half()
        ), size

    def normed(self, rows: str) -> bool:
        """Say whether ``rows`` are the hidden state, which a layer normalization made."""
        return rows.startswith("LayerNormalization")

    def half(self) -> str:
        """Return the zero point of activations: unsigned numbers times signed ones is what processors are fast at."""
        return self.constant("half", np.array(HALF, dtype=np.uint8))

    def linear(self, rows: str, names: list[str]) -> str:
        """Add ``rows @ W.T + b``; several layers that read the same rows are multiplied at once."""
        matrix = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T
        bias = self.constant(f"{names[0]}.bias", np.concatenate([self.weights[f"{n}.bias"] for n in names]))
        if not self.int8:
            return self.op("Add", self.op("MatMul", rows, self.constant(names[0], matrix)), bias)
        if self.normed(rows):
            evened = np.ones(HIDDEN, dtype=np.float32)
            evened[list(LOUD)] = list(LOUD.values())
            rows, matrix = (
                self.op("Mul", rows, self.constant("evening", 1 / evened)),
                matrix * evened[:, None],
            )
        values, scales = quantized_columns(matrix)
        small, size = self.quantized(rows)
        scale = self.constant(f"{names[0]}.scale", scales / np.float32(LARGEST))
        product = self.op("MatMulInteger", small, self.constant(f"{names[0]}.int8", values), self.half())
        scaled = self.op("Mul", self.op("Mul", self.op("Cast", product, to=TensorProto.FLOAT), size), scale)
        return self.op("Add", scaled, bias)


def build(weights: dict[str, Array], *, int8: bool) -> bytes:
    """Return the model's bytes; the same weights give the same bytes everywhere."""
    graph = Builder(weights, int8)
    tokens = graph.op("Shape", "ids")  # texts, tokens
    rows = _embedded(graph)
    blocked = graph.op(  # 0 where a token counts, a large negative number where it pads
        "Mul",
        graph.op("Sub", graph.number(1.0), graph.op("Cast", "mask", to=TensorProto.FLOAT)),
        graph.number(-10000.0),
    )
    blocked = graph.op("Unsqueeze", blocked, graph.shape(1, 2))
    for layer in range(LAYERS):
        rows = layered(graph, rows, tokens, blocked, f"encoder.layer.{layer}")
    _pooled(graph, rows, tokens)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm_l6",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"]),
                helper.make_tensor_value_info("mask", TensorProto.INT64, ["texts", "tokens"]),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", HIDDEN])],
            list(graph.constants.values()),
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="sluice",
        producer_version="1",
    )
    return serialized(model)


def serialized(model: ModelProto) -> bytes:
    """Return the bytes of a model, the same everywhere."""
    done: bytes = model.SerializeToString(deterministic=True)
    return done


def _embedded(graph: Builder) -> str:
    """Add words, positions and the one token type, normalized; return ``[texts * tokens, hidden]``."""
    words = graph.rows("embeddings.word_embeddings", "ids")
    positions = graph.weights["embeddings.position_embeddings.weight"]
    kind = graph.weights["embeddings.token_type_embeddings.weight"][0]
    places = graph.constant("embeddings.places", positions + kind)
    length = graph.op("Gather", graph.op("Shape", "ids"), graph.shape(1), axis=0)
    first = graph.op("Slice", places, graph.shape(0), length, graph.shape(0))
    summed = graph.op("Add", words, first)
    return graph.norm(graph.op("Reshape", summed, graph.shape(-1, HIDDEN)), "embeddings.LayerNorm")


def layered(graph: Builder, rows: str, tokens: str, blocked: str, name: str) -> str:
    """Add one layer: attention, then two matrices with a GELU between them, each with a residual and a norm."""
    attention = f"{name}.attention"
    joined = graph.linear(rows, [f"{attention}.self.{part}" for part in ("query", "key", "value")])
    split = graph.op("Concat", tokens, graph.shape(3, HEADS, HIDDEN // HEADS), axis=0)
    parts = graph.op("Transpose", graph.op("Reshape", joined, split), perm=[2, 0, 3, 1, 4])
    query, key, value = (
        graph.op("Gather", parts, graph.constant(f"part_{part}", np.array(part, dtype=np.int64)), axis=0)
        for part in range(3)
    )
    query = graph.op("Mul", query, graph.number((HIDDEN // HEADS) ** -0.5))
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    shares = graph.op("Softmax", graph.op("Add", scores, blocked), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", shares, value), perm=[0, 2, 1, 3])
    mixed = graph.op("Reshape", mixed, graph.shape(-1, HIDDEN))
    seen = graph.linear(mixed, [f"{attention}.output.dense"])
    rows = graph.norm(graph.op("Add", seen, rows), f"{attention}.output.LayerNorm")
    wide = graph.op("Gelu", graph.linear(rows, [f"{name}.intermediate.dense"]), approximate="none")
    narrow = graph.linear(wide, [f"{name}.output.dense"])
    return graph.norm(graph.op("Add", narrow, rows), f"{name}.output.LayerNorm")


def _pooled(graph: Builder, rows: str, tokens: str) -> None:
    """Add the mean over the tokens that count, at unit length."""
    texts = graph.op("Reshape", rows, graph.op("Concat", tokens, graph.shape(HIDDEN), axis=0))
    weight = graph.op("Unsqueeze", graph.op("Cast", "mask", to=TensorProto.FLOAT), graph.shape(-1))
    summed = graph.op("ReduceSum", graph.op("Mul", texts, weight), graph.shape(1), keepdims=0)
    length = graph.op("ReduceL2", summed, graph.shape(-1), keepdims=1)
    # The mean and the sum point the same way, so dividing by the number of tokens is left out.
    length = graph.op("Max", length, graph.number(SMALLEST))
    graph.nodes.append(helper.make_node("Div", [summed, length], ["vectors"], name="vectors"))
