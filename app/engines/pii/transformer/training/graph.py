"""The trained tagger as an ONNX graph: vectors of word-pieces in, one row of tag scores a piece out."""

from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, TensorProto, helper

from app.engines.encoder.export.graph import HIDDEN, IR_VERSION, OPSET, Builder, layered, serialized
from app.engines.encoder.export.quantization import quantized_columns
from app.engines.encoder.export.source import Array
from app.engines.pii.names.decoding import TAGS

Ranges = dict[str, tuple[Array, Array]]

_RUNTIME = "com.microsoft"
_STEPS = 255
_EVENED = np.float32(0.9)
"""How much of their difference in size columns give to the matrix; measured, with the least error in 8 bits."""


@dataclass
class Calibrated(Builder):
    """A graph whose activations become 8 bits by steps that were measured beforehand, one for each matrix.

    The encoder measures each row anew; here it costs more than the products. Columns that are much larger than
    others give part of their size to the rows of the matrix that they meet.
    """

    ranges: Ranges = field(default_factory=dict)

    def linear(self, rows: str, names: list[str]) -> str:
        """Add ``rows @ W.T + b``; several layers that read the same rows are multiplied at once."""
        if not self.int8:
            return super().linear(rows, names)
        matrix = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T
        bias = np.concatenate([self.weights[f"{name}.bias"] for name in names])
        low, high = self.ranges[names[0]]
        largest = np.maximum(np.maximum(-low, high), 1e-4)
        share = largest**_EVENED / np.abs(matrix).max(axis=1) ** (1 - _EVENED)
        share /= np.exp(np.log(share).mean())
        low, high = (low / share).min(), (high / share).max()
        step = np.float32((high - low) / _STEPS)
        zero = np.uint8(np.clip(np.rint(-low / step), 0, _STEPS))
        values, scales = quantized_columns(matrix * share[:, None])
        name = names[0]
        even = self.op("Mul", rows, self.constant(f"{name}.share", 1 / share))
        step_name, zero_name = (
            self.constant(f"{name}.step", np.asarray(step)),
            self.constant(f"{name}.zero", np.asarray(zero)),
        )
        return self.op(
            "MatMulIntegerToFloat",
            self.op("QuantizeLinear", even, step_name, zero_name),
            self.constant(f"{name}.int8", values),
            step_name,
            self.constant(f"{name}.scale", scales),
            zero_name,
            self.constant("zero", np.zeros((), np.int8)),
            self.constant(f"{name}.bias", bias),
            domain=_RUNTIME,
        )


def build(parameters: dict[str, Array], ranges: Ranges | None) -> bytes:
    """Return the model's bytes, in 8 bits where ``ranges`` of the inputs of its matrices are given.

    ``parameters`` are those that training stored.
    """
    named = {f"{name}.weight": parameters[name] for name in ("outlines", "lists")}
    graph = Calibrated({**parameters, **named}, ranges is not None, ranges=ranges or {})
    shape = graph.op("Shape", "mask")  # texts, pieces
    length = graph.op("Gather", shape, graph.shape(1), axis=0)
    places = graph.constant("places", parameters["places"])
    summed = graph.op("Add", "vectors", graph.op("Slice", places, graph.shape(0), length, graph.shape(0)))
    for kind in ("outlines", "lists"):
        summed = graph.op("Add", summed, graph.rows(kind, kind))
    rows = graph.norm(graph.op("Reshape", summed, graph.shape(-1, HIDDEN)), "embeddings.LayerNorm")
    there = graph.op("Cast", "mask", to=TensorProto.FLOAT)
    blocked = graph.op("Mul", graph.op("Sub", graph.number(1.0), there), graph.number(-10000.0))
    blocked = graph.op("Unsqueeze", blocked, graph.shape(1, 2))
    for layer in range(layers(parameters)):
        rows = layered(graph, rows, shape, blocked, f"encoder.layer.{layer}")
    # The last matrix is tiny, so it stays in 32 bits.
    scores = graph.op("MatMul", rows, graph.constant("out", parameters["out"]))
    scores = graph.op("Add", scores, graph.constant("out_bias", parameters["out_bias"]))
    sizes = graph.op("Concat", shape, graph.shape(len(TAGS)), axis=0)
    graph.nodes.append(helper.make_node("Reshape", [scores, sizes], ["scores"], name="scores"))
    return serialized(_model(graph))


def layers(parameters: dict[str, Array]) -> int:
    """Return how many layers were trained."""
    return sum(name.endswith(".attention.self.query.weight") for name in parameters)


def _model(graph: Builder) -> ModelProto:
    axes = ["texts", "pieces"]
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "names",
            [
                helper.make_tensor_value_info("vectors", TensorProto.FLOAT, [*axes, HIDDEN]),
                *(
                    helper.make_tensor_value_info(n, TensorProto.INT64, axes)
                    for n in ("outlines", "lists", "mask")
                ),
            ],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [*axes, len(TAGS)])],
            list(graph.constants.values()),
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(_RUNTIME, 1)],
        ir_version=IR_VERSION,
        producer_name="sluice",
        producer_version="1",
    )
