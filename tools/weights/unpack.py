"""Makes an ONNX file of a packed model: the inverse of pack.py.

    pip install onnx
    python3 unpack.py ../../crates/strata-weights/data/strata-reader.bin model_int8.onnx
"""

import struct
import sys

import onnx


def main(source: str, target: str) -> None:
    with open(source, "rb") as file:
        packed = file.read()
    (length,) = struct.unpack("<Q", packed[-8:])
    model = onnx.load_from_string(packed[-8 - length : -8])
    tensors = packed[: -8 - length]
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        place = {entry.key: entry.value for entry in tensor.external_data}
        start = int(place["offset"])
        tensor.raw_data = tensors[start : start + int(place["length"])]
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
    onnx.save(model, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
