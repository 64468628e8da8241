"""Trains the reader: one body, six heads.

A batch trains one of three tasks: sentences (worth, kind, voice, case), pairs of lines (relation), or a question with a
turn that answers it and three that do not (answers). Of streams, cases and messages the held-out tenth is left out.
"""

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from archives import Archives
from gloss import SEP
from network import (
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
from reader_input import ReaderData, SegmentBatch, segment_batch
from rows import Batch

HEADS = {"worth": 2, "kind": 9, "voice": 7, "case": 14, "relation": 4, "answers": 2}
SENTENCE_LOSSES = {"worth": 1.0, "kind": 0.5, "voice": 1.0, "case": 1.0}
# What a line does to another is rare, and what is rare weighs more: nothing, repeats, replaces, ends.
RELATION_WEIGHTS = [1.0, 1.5, 2.0, 2.5]
LABEL_SMOOTHING = 0.05
HEAD_DROPOUT = 0.1

SEED = 1
EPOCHS = 5
BODY_RATE = 1.4e-4
HEADS_RATE = 5 * BODY_RATE
WARM_UP = 150
SENTENCES_IN_A_BATCH = 96
PAIRS_IN_A_BATCH = 128
QUESTIONS_IN_A_BATCH = 32

# Questions of each source in an epoch; more than there are means some of them twice.
QUESTIONS_IN_AN_EPOCH = {
    "question": 9000,
    "situation": 4000,
    "persona_chat": 4000,
    "squad": 5000,
    "schema_guided": 3000,
    "qmsum": 1000,
}
HARD_NEGATIVES = 2
HARDEST = 12
TURNS_OF_A_QUESTION = 4
LONGEST_QUESTION = 64
LONGEST_TURN = 110
TURN_CONTEXT = 24


class Reader(nn.Module):
    def __init__(self, base: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.body = Body()
        load_body(self.body, base)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.judge = nn.Linear(WIDTH, WIDTH)
        self.heads = nn.ModuleDict({name: nn.Linear(WIDTH, classes) for name, classes in HEADS.items()})

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> dict[str, Tensor]:
        """Logits; `answers` has a layer of its own, the other heads share one."""
        mean = mean_over(self.body(ids, mask, segments), mask)
        read = functional.dropout(torch.tanh(self.dense(mean)), HEAD_DROPOUT, self.training)
        judged = functional.dropout(torch.tanh(self.judge(mean)), HEAD_DROPOUT, self.training)
        return {name: head(judged if name == "answers" else read) for name, head in self.heads.items()}


@dataclass(frozen=True)
class Step:
    """A batch of one task, with the labels that the task has."""

    task: str
    batch: SegmentBatch
    labels: dict[str, Tensor]


class Tasks:
    """Draws the batches of an epoch."""

    def __init__(self, data: ReaderData, archives: Archives, limit: int | None, seed: int) -> None:
        self.data = data
        self.archives = archives
        self.random = np.random.default_rng(seed)
        sentences = np.flatnonzero(~data.sentence_is_held_out)[:limit]
        # Sentences of messages are few and hard: each comes twice.
        self.sentences = np.concatenate([sentences, sentences[data.sentence_is_in_message[sentences]]])
        self.pairs = np.flatnonzero(~data.pair_is_held_out)[:limit]
        self.limit = limit

    def epoch(self) -> list[tuple[str, np.ndarray]]:
        batches = [
            *self._batches("sentences", self.sentences, SENTENCES_IN_A_BATCH),
            *self._batches("pairs", self.pairs, PAIRS_IN_A_BATCH),
            *self._batches("questions", self._questions(), QUESTIONS_IN_A_BATCH),
        ]
        return [batches[number] for number in self.random.permutation(len(batches))]

    def steps(self, epochs: int) -> Iterator[Step]:
        for _ in range(epochs):
            for task, numbers in self.epoch():
                yield self.step(task, numbers)

    def step(self, task: str, numbers: np.ndarray) -> Step:
        if task == "sentences":
            return Step(task, self.data.sentence_batch(numbers), self.data.sentence_labels(numbers))
        if task == "pairs":
            return Step(task, self.data.pair_batch(numbers), {"relation": self.data.relations(numbers)})
        turns = [self._turns(question) for question in numbers]
        first = [question_row(self.archives, question) for question in numbers for _ in range(TURNS_OF_A_QUESTION)]
        second = [turn_row(self.archives, turn) for group in turns for turn in group]
        return Step(task, segment_batch(first, second), {})

    def _batches(self, task: str, numbers: np.ndarray, size: int) -> list[tuple[str, np.ndarray]]:
        shuffled = self.random.permutation(numbers)
        return [(task, part) for part in np.array_split(shuffled, max(1, len(shuffled) // size)) if len(part)]

    def _questions(self) -> np.ndarray:
        chosen = []
        for source, count in QUESTIONS_IN_AN_EPOCH.items():
            questions = np.flatnonzero(self.archives.sources == source)
            wanted = count if self.limit is None else min(count, self.limit)
            if len(questions):
                chosen.append(self.random.choice(questions, wanted, replace=wanted > len(questions)))
        return np.concatenate(chosen)

    def _turns(self, question: int) -> list[int]:
        """An answer, two of the twelve hardest turns that are none, and random turns up to four."""
        answers = self.archives.answers[question]
        answers = answers[answers >= 0]
        mined = self.archives.negatives[question]
        mined = mined[mined >= 0][:HARDEST]
        turns = [self.random.choice(answers), *self.random.permutation(mined)[:HARD_NEGATIVES]]
        [start], [end] = self.archives.archive_of(np.array([question]))
        while len(turns) < TURNS_OF_A_QUESTION:
            turn = self.random.integers(start, end)
            if turn not in answers or end - start < TURNS_OF_A_QUESTION:
                turns.append(turn)
        return [int(turn) for turn in turns]


def main() -> None:
    arguments = parse_arguments()
    device = device_of(arguments.cpu)
    torch.manual_seed(SEED)
    base = read_weights(arguments.base)
    archives = Archives(arguments.questions, device, arguments.limit)
    missing = sorted(set(QUESTIONS_IN_AN_EPOCH) - set(archives.sources))
    if missing:
        print(f"no questions of {', '.join(missing)}: trained without them")
    mine_with_base(archives, base, device)
    reader = Reader(base).to(device)
    train(reader, Tasks(ReaderData(arguments.data), archives, arguments.limit, SEED), arguments.steps, device)
    save_weights(arguments.out, reader)
    print(f"-> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="base.npz", help="the output of base.py (default: %(default)s)")
    parser.add_argument("--data", default="reader_data.npz", help="of reader_data.py (default: %(default)s)")
    parser.add_argument("--questions", default="encoder_data.npz", help="of encoder_data.py (default: %(default)s)")
    parser.add_argument("--out", default="reader.npz", help="the weights to write (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="stop after this many, for a trial run (default: five epochs)")
    parser.add_argument("--limit", type=int, help="use only this many items of each task, for a trial run")
    parser.add_argument("--cpu", action="store_true", help="run on the processor, for a trial run")
    return parser.parse_args()


def mine_with_base(archives: Archives, base: dict[str, np.ndarray], device: torch.device) -> None:
    """The questions' hard negatives, as the untrained base ranks the turns."""
    body = Body().to(device)
    load_body(body, base)
    body.eval()

    def vectors(batch: Batch) -> Tensor:
        hidden = body(batch.ids, batch.mask).float()
        return functional.normalize(mean_over(hidden, batch.kept), dim=-1)

    archives.mine(vectors, vectors)


def train(reader: Reader, tasks: Tasks, most_steps: int | None, device: torch.device) -> None:
    reader.train()
    heads = [parameter for name, parameter in reader.named_parameters() if not name.startswith("body.")]
    optimizer = adam(device, list(reader.body.parameters()), BODY_RATE, heads, HEADS_RATE)
    in_epoch = len(tasks.epoch())
    total = EPOCHS * in_epoch if most_steps is None else most_steps
    losses: dict[str, list[float]] = defaultdict(list)
    began = time.monotonic()
    for number, step in enumerate(prefetch(tasks.steps(math.ceil(total / in_epoch))), 1):
        set_learning_rate(optimizer, min(1, number / WARM_UP) * max(0.02, 1 - number / total))
        loss = loss_of(reader, step, device)
        descend(loss, reader, optimizer)
        if number % 20 == 0 or number == total:
            losses[step.task].append(loss.item())
        if number % in_epoch == 0 or number == total:
            means = {task: round(float(np.mean(values)), 3) for task, values in losses.items()}
            print(f"step {number} of {total}: losses {means}, {time.monotonic() - began:.0f} s", flush=True)
            losses.clear()
        if number == total:
            break


def loss_of(reader: Reader, step: Step, device: torch.device) -> Tensor:
    with half_precision(device):
        logits = reader(*(tensor.to(device, non_blocking=True) for tensor in step.batch.tensors()))
    logits = {name: tensor.float() for name, tensor in logits.items()}
    labels = {name: tensor.to(device) for name, tensor in step.labels.items()}
    if step.task == "sentences":
        return sentence_loss(logits, labels)
    if step.task == "pairs":
        weights = torch.tensor(RELATION_WEIGHTS, device=device)
        return functional.cross_entropy(
            logits["relation"], labels["relation"], weight=weights, label_smoothing=LABEL_SMOOTHING
        )
    return answers_loss(logits["answers"])


def sentence_loss(logits: dict[str, Tensor], labels: dict[str, Tensor]) -> Tensor:
    losses = [
        weight * functional.cross_entropy(logits[head], labels[head], ignore_index=-1, label_smoothing=LABEL_SMOOTHING)
        for head, weight in SENTENCE_LOSSES.items()
        if (labels[head] >= 0).any()
    ]
    return torch.stack(losses).sum()


def answers_loss(logits: Tensor) -> Tensor:
    """The first of each four turns answers: it shall be ranked first, and each turn shall be judged by itself too."""
    yes = (logits[:, 1] - logits[:, 0]).view(-1, TURNS_OF_A_QUESTION)
    ranking = functional.cross_entropy(yes, torch.zeros(len(yes), dtype=torch.long, device=yes.device))
    truth = torch.full_like(yes, 0.02)
    truth[:, 0] = 0.97
    weight = torch.tensor(1.5, device=yes.device)
    return ranking + functional.binary_cross_entropy_with_logits(yes, truth, pos_weight=weight)


def question_row(archives: Archives, question: int) -> np.ndarray:
    return archives.questions.row(question)[:LONGEST_QUESTION]


def turn_row(archives: Archives, turn: int) -> np.ndarray:
    own = archives.turns.row(turn)[:LONGEST_TURN]
    before = archives.turns.row_before(turn)
    return own if before is None else np.concatenate([before[-TURN_CONTEXT:], [SEP], own])


if __name__ == "__main__":
    main()
