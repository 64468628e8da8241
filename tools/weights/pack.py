"""Packs an ONNX model into the form that `strata-weights` holds: the tensors first, each aligned, then the graph.

    pip install onnx
    python3 pack.py model_int8.onnx ../../crates/strata-weights/data/strata-encoder.bin

A program can then use the tensors where they are. In a plain ONNX file they stand inside the graph, and reading it copies them.
`crates/strata-weights/data/README.md` describes the form.
"""

import struct
import sys

import onnx

ALIGNMENT = 64
SMALLEST = 256  # smaller tensors stay inside the graph


def main(source: str, target: str) -> None:
    model = onnx.load(source)
    tensors = bytearray()
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) < SMALLEST:
            continue
        tensors.extend(bytes(-len(tensors) % ALIGNMENT))
        place = {"location": "tensors.data", "offset": len(tensors), "length": len(tensor.raw_data)}
        tensors.extend(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in place.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    graph = model.SerializeToString()
    with open(target, "wb") as file:
        file.write(tensors + graph + struct.pack("<Q", len(graph)))


if __name__ == "__main__":
    main(*sys.argv[1:])
