"""Writes the networks as ONNX graphs, operation by operation (opset 17).

An exporter's graph would do as well. This one has only the operations that `rten` runs fast, and the same names each
time.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from network import ATTENTION_HEADS, LAYERS, NORM_EPSILON, WIDTH

OPSET = 17
IR_VERSION = 8
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
FAR_BELOW = -1e9


class Graph:
    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, np.ndarray] = {}
        self._outputs: list[onnx.ValueInfoProto] = []

    def operation(self, kind: str, inputs: list[str], output: str | None = None, **attributes: object) -> str:
        number = len(self._nodes) + 1
        output = output or f"{kind.lower()}_{number}"
        self._nodes.append(helper.make_node(kind, inputs, [output], name=f"node_{number}", **attributes))
        return output

    def constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = np.ascontiguousarray(value)
        return name

    def integers(self, name: str, values: list[int]) -> str:
        return self.constant(name, np.array(values, np.int64))

    def number(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def weight(self, name: str) -> str:
        return self.constant(name, self._weights[name].astype(np.float32))

    def matrix_product(self, value: str, name: str, output: str | None = None) -> str:
        matrix = self.constant(f"{name}.weight", self._weights[f"{name}.weight"].T.astype(np.float32))
        return self.operation("MatMul", [value, matrix], output)

    def linear(self, value: str, name: str, output: str | None = None) -> str:
        return self.operation("Add", [self.matrix_product(value, name), self.weight(f"{name}.bias")], output)

    def norm(self, value: str, name: str, output: str | None = None) -> str:
        inputs = [value, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.operation("LayerNormalization", inputs, output, axis=-1, epsilon=NORM_EPSILON)

    def add_output(self, name: str, shape: list[str | int]) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def save(self, path: Path) -> None:
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"]) for name in INPUTS]
        tensors = [numpy_helper.from_array(value, name) for name, value in self._constants.items()]
        graph = helper.make_graph(self._nodes, "strata", inputs, self._outputs, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def add_body(graph: Graph) -> str:
    """Adds the body; its output is called `last_hidden_state`."""
    hidden, mask = add_start(graph)
    return add_layers(graph, hidden, mask, output="last_hidden_state")


def add_start(graph: Graph) -> tuple[str, str]:
    """Adds the embeddings and what all layers use; gives the hidden states and the mask."""
    hidden = _embeddings(graph)
    mask = graph.operation("Unsqueeze", ["attention_mask", graph.integers("mask_axes", [1, 2])])
    mask = graph.operation("Cast", [mask], to=TensorProto.FLOAT)
    hidden_part = graph.operation("Sub", [graph.number("one", 1.0), mask])
    mask = graph.operation("Mul", [hidden_part, graph.number("far_below", FAR_BELOW)])
    head_width = WIDTH // ATTENTION_HEADS
    graph.integers("split_heads", [0, 0, ATTENTION_HEADS, head_width])
    graph.integers("join_heads", [0, 0, WIDTH])
    graph.number("attention_scale", head_width**-0.5)
    graph.number("square_root_of_two", 2**0.5)
    graph.number("half", 0.5)
    return hidden, mask


def add_layers(graph: Graph, hidden: str, mask: str, adapters: str | None = None, output: str | None = None) -> str:
    """Adds the layers; with `adapters`, each product is changed by the adapter of this name."""
    for number in range(LAYERS):
        own = None if adapters is None else f"{adapters}.{number}"
        hidden = _layer(graph, hidden, mask, f"body.layers.{number}", own, output if number == LAYERS - 1 else None)
    return hidden


def add_mean(graph: Graph, hidden: str) -> str:
    """The mean over the pieces that the mask shows."""
    weights = graph.operation("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    weights = graph.operation("Unsqueeze", [weights, graph.integers("last_axis", [2])])
    axis = graph.integers("piece_axis", [1])
    total = graph.operation("ReduceSum", [graph.operation("Mul", [hidden, weights]), axis], keepdims=0)
    count = graph.operation("ReduceSum", [weights, axis], keepdims=0)
    return graph.operation("Div", [total, count])


def quantize(source: Path, target: Path) -> None:
    """Every product with a weight in int8, with one scale for each column of the weight."""
    quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8)


def _embeddings(graph: Graph) -> str:
    words = graph.operation("Gather", [graph.weight("body.words.weight"), "input_ids"])
    segments = graph.operation("Gather", [graph.weight("body.segments.weight"), "token_type_ids"])
    shape = graph.operation("Shape", ["input_ids"])
    first, second, third = (graph.integers(f"index_{number}", [number]) for number in range(3))
    length = graph.operation("Slice", [shape, second, third, first])
    positions = graph.operation("Slice", [graph.weight("body.positions.weight"), first, length, first])
    together = graph.operation("Add", [graph.operation("Add", [words, segments]), positions])
    return graph.norm(together, "body.norm")


def _layer(graph: Graph, hidden: str, mask: str, name: str, adapters: str | None, output: str | None) -> str:
    def product(part: str, value: str) -> str:
        plain = graph.linear(value, f"{name}.{part}")
        if adapters is None:
            return plain
        small = graph.matrix_product(value, f"{adapters}.{part}.down")
        return graph.operation("Add", [plain, graph.matrix_product(small, f"{adapters}.{part}.up")])

    def heads(part: str, order: list[int]) -> str:
        projected = graph.operation("Reshape", [product(part, hidden), "split_heads"])
        return graph.operation("Transpose", [projected], perm=order)

    scores = graph.operation("MatMul", [heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])])
    scores = graph.operation("Add", [graph.operation("Mul", [scores, "attention_scale"]), mask])
    shares = graph.operation("Softmax", [scores], axis=-1)
    attended = graph.operation("MatMul", [shares, heads("value", [0, 2, 1, 3])])
    attended = graph.operation("Transpose", [attended], perm=[0, 2, 1, 3])
    attended = graph.operation("Reshape", [attended, "join_heads"])
    attended = graph.operation("Add", [hidden, product("attended", attended)])
    attended = graph.norm(attended, f"{name}.attended_norm")
    wide = _gelu(graph, product("widen", attended))
    narrow = graph.operation("Add", [attended, product("narrow", wide)])
    return graph.norm(narrow, f"{name}.narrow_norm", output)


def _gelu(graph: Graph, value: str) -> str:
    error = graph.operation("Erf", [graph.operation("Div", [value, "square_root_of_two"])])
    return graph.operation("Mul", [graph.operation("Mul", [value, graph.operation("Add", [error, "one"])]), "half"])
