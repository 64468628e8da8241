"""The forward pass of all-MiniLM-L6-v2 in NumPy: six BERT layers, no framework needed to make the table."""

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf

HEADS, LAYERS, EPS = 12, 6, 1e-12


class MiniLM:
    def __init__(self, path):
        self.w = load_file(str(path))

    def _norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + EPS) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def _linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def __call__(self, ids):
        """Hidden states of a batch of equally long sequences, [batch, length, 384]."""
        batch, length = ids.shape
        x = self.w["embeddings.word_embeddings.weight"][ids]
        x = x + self.w["embeddings.position_embeddings.weight"][:length]
        x = self._norm(x + self.w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        width = x.shape[-1]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self._linear(x, at + "attention.self." + n).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
                for n in ("query", "key", "value")
            )
            a = q @ k.transpose(0, 1, 3, 2) / np.sqrt(np.float32(width // HEADS))
            a = np.exp(a - a.max(-1, keepdims=True))
            h = (a / a.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
            x = self._norm(x + self._linear(h, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            h = self._linear(x, at + "intermediate.dense")
            h = 0.5 * h * (1 + erf(h / np.sqrt(np.float32(2))))
            x = self._norm(x + self._linear(h, at + "output.dense"), at + "output.LayerNorm")
        return x
