"""Reads a reader's weights back from its int8 ONNX file, so that `reader.py --start` can continue from them.

A weight comes back with the error of its rounding, at most half a step of its column's scale. Files of earlier scripts
name their tensors otherwise; both spellings are known. A head that the file does not have is left out, and `reader.py`
starts it anew.
"""

import argparse
import re

import numpy as np
import onnx
from onnx import numpy_helper

from network import LAYERS

EMBEDDINGS = {"we": "body.words", "pe": "body.positions", "te": "body.segments", "ln": "body.norm"}
PARTS = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "attended",
    "ln1": "attended_norm",
    "f1": "widen",
    "f2": "narrow",
    "ln2": "narrow_norm",
}
HIDDEN_LAYERS = ("dense", "judge")
HEADS = ("worth", "kind", "voice", "case", "alone", "relation", "answers")
TABLES = ("body.words", "body.positions", "body.segments")


def main() -> None:
    arguments = parse_arguments()
    weights = weights_of(onnx.load(arguments.model))
    np.savez(arguments.out, **weights)
    print(f"{len(weights)} tensors -> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="model_int8.onnx of a reader")
    parser.add_argument("out", help="the file of weights to write, .npz")
    return parser.parse_args()


def weights_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    weights = {}
    for stored, array in tensors.items():
        name, _, suffix = stored.rpartition(".")
        if suffix == "weight_quantized":
            zero = tensors[f"{name}.weight_zero_point"].astype(np.float32)
            array = (array.astype(np.float32) - zero) * tensors[f"{name}.weight_scale"]
        elif suffix not in ("weight", "bias"):
            continue
        name = trained_name(name)
        if name is None:
            continue
        is_matrix = array.ndim == 2 and name not in TABLES
        weights[f"{name}.{suffix.removesuffix('_quantized')}"] = array.T if is_matrix else array
    expected = LAYERS * 16 + 5
    found = sum(name.startswith("body.") for name in weights)
    if found != expected:
        raise SystemExit(
            f"the file has {found} tensors of the body, and {expected} are expected; is it a reader of this form?"
        )
    return weights


def trained_name(name: str) -> str | None:
    """The name that a part of the network has in `reader.py`; `None` for a constant of the graph."""
    if name.startswith(("body.", "adapters.", "heads.")) or name in HIDDEN_LAYERS:
        return name
    if name in HEADS:
        return f"heads.{name}"
    if layer := re.fullmatch(r"L\.(\d+)\.(\w+)", name):
        return f"body.layers.{layer[1]}.{PARTS[layer[2]]}"
    return EMBEDDINGS.get(name)


if __name__ == "__main__":
    main()
