"""Static token vectors that stand in for all-MiniLM-L6-v2 (layout of `builtin.bin`: data/README.md).

1. The model reads every word piece as `[CLS] piece [SEP]`. The hidden state at the position of the piece is normalised, centred, reduced
   to 256 dimensions by PCA and multiplied by a weight for its rarity. The table starts with these vectors.
2. The table is fitted so that the *sum* of a text's piece vectors reproduces the model's similarities between texts, for all pairs in a
   batch at once. The texts are general English from corpus.py and nothing else.
3. Directions are stored as int8, and lengths (the weights of the pieces) as f32. `vocab.txt` is copied unchanged.

Usage: python build_static.py MODEL_DIR WORDNET_DICT_DIR OUT_DIR   (a minute on a GPU, much longer on a CPU)
The last digits depend on the machine.
"""

import math
import pathlib
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

from common import STOP
from corpus import sentences

MAGIC, VERSION, DIM = b"STRV", 1, 256
CLS, SEP = 101, 102
FIRST_WORD = 1996  # the vocabulary is sorted by frequency from here on
STEPS, BATCH, RATE, TEMPERATURE, RANKING, SIMILARITY, STAY = 6000, 2048, 1e-3, 0.1, 3.0, 10.0, 0.2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load_model(folder):
    model = BertModel(BertConfig.from_json_file(str(folder / "config.json")), add_pooling_layer=False)
    state = {k: v.float() for k, v in load_file(str(folder / "model.safetensors")).items() if v.is_floating_point()}
    missing = model.load_state_dict(state, strict=False).missing_keys
    assert not [k for k in missing if "position_ids" not in k], missing
    return model.eval().to(DEVICE)


@torch.no_grad()
def teach(model, ids):
    """The model's own sentence vectors: mean over all pieces, unit length."""
    order = sorted(range(len(ids)), key=lambda k: len(ids[k]))
    out = torch.zeros(len(ids), model.config.hidden_size, device=DEVICE)
    for start in range(0, len(order), 1024):
        rows = order[start : start + 1024]
        width = max(len(ids[k]) for k in rows) + 2
        x, mask = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width)
        for r, k in enumerate(rows):
            x[r, : len(ids[k]) + 2] = torch.tensor([CLS, *ids[k], SEP])
            mask[r, : len(ids[k]) + 2] = 1
        mask = mask.to(DEVICE)
        hidden = model(x.to(DEVICE), attention_mask=mask).last_hidden_state
        out[rows] = F.normalize((hidden * mask[..., None]).sum(1), dim=1)
    return out


@torch.no_grad()
def start_table(model, vocabulary):
    x = torch.zeros(len(vocabulary), model.config.hidden_size, device=DEVICE)
    for pieces in torch.arange(len(vocabulary), device=DEVICE).split(2048):
        ids = torch.stack([torch.full_like(pieces, CLS), pieces, torch.full_like(pieces, SEP)], 1)
        x[pieces] = model(ids).last_hidden_state[:, 1]
    x = F.normalize(x, dim=1)
    real = torch.tensor([i for i, p in enumerate(vocabulary) if not special(p)], device=DEVICE)
    x = x - x[real].mean(0)
    _, basis = torch.linalg.eigh((x[real].T @ x[real]).double())
    x = F.normalize(x @ basis.flip(1)[:, :DIM].float(), dim=1)
    rank = torch.arange(len(vocabulary), device=DEVICE) - FIRST_WORD + 1.0
    p = torch.where(rank >= 1, 1 / ((rank.clamp(min=1) + 2.7) * 10.74), torch.tensor(1e-3, device=DEVICE))
    return 4 * x * (1e-4 / (1e-4 + p))[:, None]


def special(piece):
    return piece.startswith("[") and len(piece) > 1


class Bags:
    """The piece ids of all texts in one flat tensor."""

    def __init__(self, texts):
        self.flat = torch.tensor([i for t in texts for i in t], device=DEVICE)
        self.length = torch.tensor([len(t) for t in texts], device=DEVICE)
        self.start = F.pad(self.length.cumsum(0), (1, 0))

    def embed(self, table, rows):
        n = self.length[rows]
        offset = F.pad(n.cumsum(0), (1, 0))[:-1]
        at = torch.arange(int(n.sum()), device=DEVICE) + torch.repeat_interleave(self.start[rows] - offset, n)
        return F.normalize(F.embedding_bag(self.flat[at], table, offset, mode="sum"), dim=1)


def agreement(table, bags, target, rows):
    """Correlation of the table's similarities with the model's, on texts that were not fitted."""
    with torch.no_grad():
        s, t = bags.embed(table, rows), target[rows]
        upper = torch.triu_indices(len(rows), len(rows), 1, device=DEVICE)
        pair = torch.stack([(s @ s.T)[upper[0], upper[1]], (t @ t.T)[upper[0], upper[1]]])
        return torch.corrcoef(pair)[0, 1].item()


def fit(first, bags, target):
    shuffled = torch.randperm(len(target), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    held_out, fitted = shuffled[:2000], shuffled[2000:]
    table = torch.nn.Parameter(first.clone())
    optimiser = torch.optim.Adam([table], lr=RATE, betas=(0.9, 0.99))
    draw = torch.Generator().manual_seed(2)
    diagonal = torch.eye(BATCH, dtype=torch.bool, device=DEVICE)
    direction = F.normalize(first, dim=1)
    print(f"agreement with the model before: {agreement(first, bags, target, held_out):.3f}")
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        rows = fitted[torch.randint(len(fitted), (BATCH,), generator=draw).to(DEVICE)]
        s, t = bags.embed(table, rows), target[rows]
        s, t = s @ s.T, t @ t.T
        loss = SIMILARITY * ((s - t)[~diagonal] ** 2).mean()
        s, t = s.masked_fill(diagonal, -9), t.masked_fill(diagonal, -9)
        ranking = F.kl_div((s / TEMPERATURE).log_softmax(1), (t / TEMPERATURE).softmax(1), reduction="batchmean")
        used = bags.flat[bags.start[rows[:256]]].unique()
        turned = 1 - (F.normalize(table[used], dim=1) * direction[used]).sum(1)
        loss = loss + RANKING * ranking + STAY * (turned**2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 1000 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    table = table.detach()
    print(f"agreement with the model after: {agreement(table, bags, target, held_out):.3f}")
    return table


def main(model_dir, wordnet_dir, out_dir):
    started = time.time()
    model_dir, out_dir = pathlib.Path(model_dir), pathlib.Path(out_dir)
    torch.manual_seed(0)
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vocabulary = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    # The pieces that a reader of the table sums: no punctuation, no function words.
    silent = {tokenizer.token_to_id(w) for w in STOP}
    spoken = {
        i for i, p in enumerate(vocabulary)
        if i not in silent and not special(p) and any(c.isalnum() for c in p.removeprefix("##"))
    }
    texts = [e.ids[:126] for e in tokenizer.encode_batch(sentences(wordnet_dir, vocabulary), add_special_tokens=False)]
    texts += [[i] for i in sorted(spoken)]
    texts = [t for t in texts if any(i in spoken for i in t)]
    model = load_model(model_dir)
    target = teach(model, texts)
    bags = Bags([[i for i in t if i in spoken] for t in texts])
    print(f"{len(texts)} texts read by the model, {time.time() - started:.0f} s", flush=True)

    table = fit(start_table(model, vocabulary), bags, target).cpu().numpy()
    table[[i for i, p in enumerate(vocabulary) if special(p)]] = 0
    weight = np.linalg.norm(table, axis=1).astype("<f4")
    rows = np.round(table / np.maximum(np.abs(table).max(1, keepdims=True), 1e-12) * 127).astype(np.int8)
    blob = MAGIC + struct.pack("<3I", VERSION, len(vocabulary), DIM)
    blob += b"\0" * (64 - len(blob)) + weight.tobytes()
    blob += b"\0" * (-len(blob) % 64) + rows.tobytes()
    (out_dir / "builtin.bin").write_bytes(blob)
    (out_dir / "vocab.txt").write_text("".join(p + "\n" for p in vocabulary), encoding="utf-8")
    print(f"{out_dir / 'builtin.bin'}: {len(blob)} bytes, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:4])
