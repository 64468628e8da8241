"""Static token vectors: every word piece of all-MiniLM-L6-v2 through the model, once (layout: data/README.md).

Each piece is read as `[CLS] piece [SEP]`; its vector is the last hidden state at the piece's own place, made unit
length, centred, reduced to 256 dimensions by PCA and stored as int8. `vocab.txt` is the model's vocabulary, unchanged.
Usage: python build_static.py MODEL_DIR OUT_DIR   (about three minutes on one core)
"""

import pathlib
import shutil
import struct
import sys

import numpy as np

from minilm import MiniLM

MAGIC, VERSION, DIM, BATCH = b"STRV", 1, 256, 256
CLS, SEP = 101, 102


def piece_vectors(model, count):
    out = []
    for start in range(0, count, BATCH):
        piece = np.arange(start, min(start + BATCH, count))
        ids = np.stack([np.full_like(piece, CLS), piece, np.full_like(piece, SEP)], axis=1)
        out.append(model(ids)[:, 1])
    return np.concatenate(out).astype(np.float64)


def reduce(x, real):
    """Unit length, centred on the real pieces, projected on their 256 principal directions."""
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    x = x - x[real].mean(0)
    _, basis = np.linalg.eigh(x[real].T @ x[real])
    basis = basis[:, ::-1][:, :DIM]
    basis = basis * np.sign(basis[np.abs(basis).argmax(0), np.arange(DIM)])  # a fixed sign
    return x @ basis


def main(model_dir, out_dir):
    model_dir, out_dir = pathlib.Path(model_dir), pathlib.Path(out_dir)
    vocabulary = (model_dir / "vocab.txt").read_text(encoding="utf-8").splitlines()
    count = len(vocabulary)
    real = np.array([i for i, piece in enumerate(vocabulary) if not piece.startswith("[")])

    vectors = reduce(piece_vectors(MiniLM(model_dir / "model.safetensors"), count), real)
    top = np.abs(vectors).max(1, keepdims=True)
    rows = np.round(vectors / np.maximum(top, 1e-12) * 127).astype(np.int8)
    rows[[i for i in range(count) if i not in set(real.tolist())]] = 0  # [PAD], [CLS], [unused…]: no direction

    blob = MAGIC + struct.pack("<3I", VERSION, count, DIM)
    blob += b"\0" * (64 - len(blob))  # rows start at byte 64
    blob += rows.tobytes()
    (out_dir / "builtin.bin").write_bytes(blob)
    shutil.copyfile(model_dir / "vocab.txt", out_dir / "vocab.txt")
    print(f"{out_dir / 'builtin.bin'}: {count} pieces x {DIM}, {len(blob)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:3])
