"""Exports trained weights as ONNX, `model.onnx` in single precision and `model_int8.onnx`, and checks both.

Packing the int8 file for `strata-weights` is the next step: tools/weights/pack.py.
"""

import argparse
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from encoder import TOKEN_WIDTH, Encoder
from gloss import Pieces
from network import WIDTH, read_weights
from onnx_graph import INPUTS, Graph, add_body, add_layers, add_mean, add_start, quantize
from reader import HEADS, Reader
from reader_input import SegmentBatch, segment_batch

SAMPLES = [
    ("", "user: I moved to Leeds in May."),
    ("The shop opens at nine.", "From Monday on we open at half past eight."),
    ("我住在三楼", "上周我搬到了五楼。"),
    ("What does the dog eat?", "assistant: You said that it eats rice and fish, and never chicken."),
]


def main() -> None:
    arguments = parse_arguments()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    weights = read_weights(arguments.weights)
    graph = encoder_graph(weights) if arguments.network == "encoder" else reader_graph(weights)
    single, int8 = arguments.folder / "model.onnx", arguments.folder / "model_int8.onnx"
    graph.save(single)
    quantize(single, int8)
    batch = sample_batch()
    expected = encoder_outputs(weights, batch) if arguments.network == "encoder" else reader_outputs(weights, batch)
    for path in (single, int8):
        print(f"{path}: {path.stat().st_size:,} bytes, {difference(path, batch, expected)}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=["encoder", "reader"])
    parser.add_argument("weights", help="the output of encoder.py or reader.py")
    parser.add_argument("folder", type=Path, help="the folder to write the two files to")
    return parser.parse_args()


def encoder_graph(weights: dict[str, np.ndarray]) -> Graph:
    graph = Graph(weights)
    hidden = add_body(graph)
    graph.add_output(hidden, ["batch", "seq", WIDTH])
    graph.add_output(graph.matrix_product(hidden, "projection", "token_vectors"), ["batch", "seq", TOKEN_WIDTH])
    return graph


def reader_graph(weights: dict[str, np.ndarray]) -> Graph:
    graph = Graph(weights)
    hidden, mask = add_start(graph)
    read = graph.operation("Tanh", [graph.linear(add_mean(graph, add_layers(graph, hidden, mask)), "dense")])
    adapted = add_layers(graph, hidden, mask, adapters="adapters")
    judged = graph.operation("Tanh", [graph.linear(add_mean(graph, adapted), "judge")])
    for head, classes in HEADS.items():
        output = graph.linear(judged if head == "answers" else read, f"heads.{head}", head)
        graph.add_output(output, ["batch", classes])
    return graph


def sample_batch() -> SegmentBatch:
    pieces = Pieces()
    return segment_batch(*([np.array(pieces.of(text), np.int64) for text in side] for side in zip(*SAMPLES)))


def encoder_outputs(weights: dict[str, np.ndarray], batch: SegmentBatch) -> dict[str, np.ndarray]:
    encoder = Encoder(body_of(weights), [])
    encoder.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    encoder.eval()
    with torch.no_grad():
        hidden = encoder.body(*batch.tensors())
    return {"last_hidden_state": (hidden * batch.mask[..., None]).numpy()}


def reader_outputs(weights: dict[str, np.ndarray], batch: SegmentBatch) -> dict[str, np.ndarray]:
    reader = Reader(body_of(weights))
    reader.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    reader.eval()
    with torch.no_grad():
        logits = reader(*batch.tensors()) | reader.answers(*batch.tensors())
    return {head: values.numpy() for head, values in logits.items()}


def body_of(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("body."): array for name, array in weights.items() if name.startswith("body.")}


def difference(path: Path, batch: SegmentBatch, expected: dict[str, np.ndarray]) -> str:
    """How far the file's outputs are from those of PyTorch, as a share of their size."""
    session = onnxruntime.InferenceSession(path)
    inputs = {name: tensor.long().numpy() for name, tensor in zip(INPUTS, batch.tensors())}
    shares = []
    for name, value in expected.items():
        [output] = session.run([name], inputs)
        if output.shape == value.shape and output.ndim == 3:
            output = output * batch.mask.numpy()[..., None]
        shares.append(np.linalg.norm(output - value) / np.linalg.norm(value))
    return f"at most {100 * max(shares):.2f} % from the trained network"


if __name__ == "__main__":
    main()
