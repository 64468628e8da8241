"""Trains the encoder: a question shall be nearer to the turns that answer it than to other turns of its archive.

The body of gte-small is trained twice with different shares of the sources. Each training has two phases; the hard
negatives are searched before each of them with the network as it then is. The two results are averaged and mixed 90:10
with the base, which keeps what the base knows about texts unlike the training data.
"""

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from archives import CONTEXT, MOST_NEGATIVES, Archives
from collection import LONGEST_TURN
from gloss import SEP, Pieces
from network import (
    VOCABULARY_SIZE,
    WIDTH,
    Body,
    adam,
    descend,
    device_of,
    half_precision,
    load_body,
    mean_over,
    read_weights,
    save_weights,
    set_learning_rate,
)
from prefetch import prefetch
from rows import Batch

QUESTIONS_IN_A_BATCH = 192
NEGATIVES = 5
LONGEST_ASKED = 64
CONTEXT_SHARE = 0.5
TURN_CHUNKS = 6
STEPS_OF_A_PHASE = 450
BODY_RATE = 6e-5
HEADS_RATE = 8 * BODY_RATE
TOKEN_WIDTH = 64
# The loss of single pieces is taken in every tenth step with this weight. Only the mean vector is used in the end.
TOKEN_LOSS_EVERY = 10
TOKEN_LOSS = 0.3
SHARE_OF_TRAINED = 0.9


@dataclass(frozen=True)
class Run:
    """One training: its seed, and how often a question of each source is drawn, relative to the others."""

    seed: int
    shares: dict[str, float]


@dataclass(frozen=True)
class Phase:
    rate: float
    warm_up: int


OPEN_SHARES = {"change": 1.2, "persona_chat": 1.0, "qmsum": 1.5}
RUNS = [
    Run(1, OPEN_SHARES | {"question": 8.0, "situation": 8.0, "schema_guided": 0.5, "squad": 0.5}),
    Run(2, OPEN_SHARES | {"question": 6.0, "situation": 12.0, "schema_guided": 0.75, "squad": 0.75}),
]
PHASES = [Phase(1.0, 60), Phase(0.6, 30)]


class Encoder(nn.Module):
    """The body with the heads of the token loss. `projection` is exported, since it marks the format of the file."""

    def __init__(self, base: dict[str, np.ndarray], punctuation: list[int]) -> None:
        super().__init__()
        self.body = Body()
        load_body(self.body, base)
        self.projection = nn.Linear(WIDTH, TOKEN_WIDTH, bias=False)
        self.importance = nn.Linear(WIDTH, 1)
        self.token_scale = nn.Parameter(torch.tensor(math.log(30.0)))
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))
        nn.init.orthogonal_(self.projection.weight)
        nn.init.zeros_(self.importance.weight)
        nn.init.constant_(self.importance.bias, 0.54)
        silent = torch.zeros(VOCABULARY_SIZE, dtype=torch.bool)
        silent[torch.tensor([*punctuation, SEP])] = True
        self.register_buffer("silent", silent, persistent=False)

    def vectors(self, batch: Batch) -> Tensor:
        return pooled(self.body(batch.ids, batch.mask), batch)

    def turn_tokens(self, hidden: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of a turn's pieces, and which of them count: `[CLS]`, and its own pieces but punctuation."""
        counted = batch.kept & ~self.silent[batch.ids]
        counted[:, 0] = True
        return functional.normalize(self.projection(hidden).float(), dim=-1), counted

    def question_tokens(self, hidden: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of a question's pieces and their weights, which sum to 1."""
        weights = functional.softplus(self.importance(hidden).float()).squeeze(-1)
        weights = weights * (batch.mask & (batch.ids != SEP))
        return functional.normalize(self.projection(hidden).float(), dim=-1), weights / weights.sum(1, keepdim=True)


@dataclass(frozen=True)
class Step:
    """A batch: questions, turns in chunks of like length, the column of each answer, and columns that do not count."""

    questions: np.ndarray
    chunks: list[np.ndarray]
    context: int
    answers: np.ndarray
    ignored: np.ndarray


def main() -> None:
    arguments = parse_arguments()
    device = device_of(arguments.cpu)
    base = read_weights(arguments.base)
    archives = Archives(arguments.data, device, arguments.limit)
    punctuation = Pieces().punctuation()
    trained = []
    for run in RUNS:
        torch.manual_seed(run.seed)
        encoder = Encoder(base, punctuation).to(device)
        train(encoder, archives, run, arguments.steps)
        trained.append({name: tensor.detach().clone() for name, tensor in encoder.state_dict().items()})
    encoder.load_state_dict(mixed(averaged(trained), base))
    save_weights(arguments.out, encoder)
    print(f"-> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="base.npz", help="the output of base.py (default: %(default)s)")
    parser.add_argument("--data", default="encoder_data.npz", help="of encoder_data.py (default: %(default)s)")
    parser.add_argument("--out", default="encoder.npz", help="the weights to write (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=STEPS_OF_A_PHASE, help="of each phase (default: %(default)s)")
    parser.add_argument("--limit", type=int, help="use only this many questions, for a trial run")
    parser.add_argument("--cpu", action="store_true", help="run on the processor, for a trial run")
    return parser.parse_args()


def train(encoder: Encoder, archives: Archives, run: Run, steps: int) -> None:
    random = np.random.default_rng(run.seed)
    shares = np.array([run.shares[source] for source in archives.sources])
    for number, phase in enumerate(PHASES, 1):
        encoder.eval()
        archives.mine(encoder.vectors, encoder.vectors)
        began = time.monotonic()
        loss = train_phase(encoder, archives, phase, steps, shares / shares.sum(), random)
        seconds = time.monotonic() - began
        print(f"run {run.seed}, phase {number}: {steps} steps, loss {loss:.3f}, {seconds:.0f} s", flush=True)


def train_phase(
    encoder: Encoder, archives: Archives, phase: Phase, steps: int, shares: np.ndarray, random: np.random.Generator
) -> float:
    """The last loss."""
    encoder.train()
    body = list(encoder.body.parameters())
    heads = [parameter for name, parameter in encoder.named_parameters() if not name.startswith("body.")]
    optimizer = adam(archives.turns.device, body, BODY_RATE * phase.rate, heads, HEADS_RATE * phase.rate)
    loss = torch.zeros(())
    batches = (draw(archives, shares, random) for _ in range(steps))
    for number, step in enumerate(prefetch(batches)):
        cosine = 0.5 * (1 + math.cos(math.pi * number / steps))
        set_learning_rate(optimizer, min(1, (number + 1) / phase.warm_up) * max(0.02, cosine))
        loss = loss_of(encoder, archives, step, with_tokens=number % TOKEN_LOSS_EVERY == 0)
        descend(loss, encoder, optimizer)
    return loss.item()


def draw(archives: Archives, shares: np.ndarray, random: np.random.Generator) -> Step:
    """Questions, for each one answer, four hard negatives and a random turn of its archive."""
    drawn = np.searchsorted(np.cumsum(shares), random.random(QUESTIONS_IN_A_BATCH + 8))
    questions = np.unique(drawn.clip(0, len(shares) - 1))
    random.shuffle(questions)
    questions = questions[:QUESTIONS_IN_A_BATCH]
    all_answers = archives.answers[questions]
    chosen = (random.random(len(questions)) * (all_answers >= 0).sum(1)).astype(int)
    answers = all_answers[np.arange(len(questions)), chosen]
    negatives = draw_negatives(archives, questions, random)
    turns, places = np.unique(np.concatenate([answers, negatives.ravel()]), return_inverse=True)
    answer_places = places.ravel()[: len(questions)]
    ignored = (turns[None, :, None] == all_answers[:, None, :]).any(2)
    ignored[np.arange(len(questions)), answer_places] = False
    context = CONTEXT if random.random() < CONTEXT_SHARE else 0
    order = np.argsort(archives.turns.packed_lengths(turns, LONGEST_TURN, context), kind="stable")
    place_of = np.argsort(order)
    chunks = [chunk for chunk in np.array_split(turns[order], TURN_CHUNKS) if len(chunk)]
    return Step(questions, chunks, context, place_of[answer_places], ignored[:, order])


def draw_negatives(archives: Archives, questions: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Hard negatives at random, the harder ones more often; random turns where they are too few, and one at the end."""
    mined = archives.negatives[questions]
    keys = random.random(mined.shape) + np.where(mined < 0, 10, 0) + np.arange(MOST_NEGATIVES) * 0.02
    hard = np.take_along_axis(mined, np.argsort(keys, 1)[:, : NEGATIVES - 1], 1)
    start, end = archives.archive_of(questions)
    anywhere = (start[:, None] + random.random((len(questions), NEGATIVES)) * (end - start)[:, None]).astype(np.int64)
    return np.concatenate([np.where(hard < 0, anywhere[:, :-1], hard), anywhere[:, -1:]], 1)


def loss_of(encoder: Encoder, archives: Archives, step: Step, with_tokens: bool) -> Tensor:
    device = archives.turns.device
    answers = torch.from_numpy(step.answers).to(device)
    ignored = torch.from_numpy(step.ignored).to(device)
    asked = archives.questions.pack(step.questions, LONGEST_ASKED)
    turns = [archives.turns.pack(chunk, LONGEST_TURN, step.context) for chunk in step.chunks]
    with half_precision(device):
        asked_hidden = encoder.body(asked.ids, asked.mask)
        turns_hidden = [encoder.body(batch.ids, batch.mask) for batch in turns]
    turn_vectors = torch.cat([pooled(hidden, batch) for hidden, batch in zip(turns_hidden, turns)])
    scores = pooled(asked_hidden, asked) @ turn_vectors.T * encoder.scale.exp().clamp(max=60)
    loss = functional.cross_entropy(scores.masked_fill(ignored, -1e4), answers)
    if not with_tokens:
        return loss
    with half_precision(device):
        asked_tokens, weights = encoder.question_tokens(asked_hidden, asked)
        turn_tokens = [encoder.turn_tokens(hidden, batch) for hidden, batch in zip(turns_hidden, turns)]
    token_scores = torch.cat([best_tokens(asked_tokens, weights, *tokens) for tokens in turn_tokens], 1)
    token_scores = token_scores * encoder.token_scale.exp().clamp(max=100)
    return loss + TOKEN_LOSS * functional.cross_entropy(token_scores.masked_fill(ignored, -1e4), answers)


def pooled(hidden: Tensor, batch: Batch) -> Tensor:
    return functional.normalize(mean_over(hidden.float(), batch.kept), dim=-1)


def best_tokens(asked: Tensor, weights: Tensor, turns: Tensor, counted: Tensor) -> Tensor:
    """For each question and turn: the weighted mean, over the question's pieces, of the best piece of the turn."""
    scores = torch.einsum("bqd,nld->bnql", asked, turns)
    scores = scores.masked_fill(~counted[None, :, None, :], -1.0)
    return (scores.max(-1).values * weights[:, None, :]).sum(-1)


def averaged(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def mixed(state: dict[str, Tensor], base: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """The body mixed with the base; the heads have no base."""
    for name, array in base.items():
        original = torch.from_numpy(array).to(state["body." + name].device)
        state["body." + name] = SHARE_OF_TRAINED * state["body." + name] + (1 - SHARE_OF_TRAINED) * original
    return state


if __name__ == "__main__":
    main()
