"""Trains the reader: one body, which adapters change for `answers`, and seven heads.

A batch trains one of four tasks: sentences (worth, kind, voice, case, alone), pairs of lines (relation), a question with a
turn that answers it and three that do not (answers), or questions with lines of small stores (answers too). Of all but
the dialogues the held-out tenth is left out.

`--start` continues from a trained reader, usually the shipped one (from_onnx.py), with new data. Then the rates are
lower, and relations and answers are held near to what the reader said before (`--hold`). `--answers-only` trains the
adapters and what is above them, and leaves every other output as it is.
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
    Linear,
    adam,
    adapters_of_layers,
    descend,
    device_of,
    half_precision,
    load_body,
    mean_over,
    read_weights,
    round_as_int8,
    save_weights,
    set_learning_rate,
)
from prefetch import prefetch
from reader_input import ReaderData, SegmentBatch, segment_batch
from rows import Batch

HEADS = {"worth": 2, "kind": 9, "voice": 7, "case": 14, "alone": 2, "relation": 4, "answers": 2}
SENTENCE_LOSSES = {"worth": 1.0, "kind": 0.5, "voice": 1.0, "case": 1.0, "alone": 0.5}
# What a line does to another is rare, and what is rare weighs more: nothing, repeats, replaces, ends.
RELATION_WEIGHTS = [1.0, 1.5, 2.0, 2.5]
LABEL_SMOOTHING = 0.05
HEAD_DROPOUT = 0.1

SEED = 1
EPOCHS = 5
BODY_RATE = 1.4e-4
HEADS_RATE = 5 * BODY_RATE
WARM_UP = 150
MOST_EPOCHS = 1000
# Sentences further apart than this are of different streams.
LONGEST_STREAM = 100
SENTENCES_IN_A_BATCH = 96
PAIRS_IN_A_BATCH = 128
QUESTIONS_IN_A_BATCH = 32
LINES_IN_A_BATCH = 96
# Lines that answer are a seventh of those asked for.
ANSWER_WEIGHTS = [1.0, 2.0]
TASKS_OF_ANSWERS = ["questions", "lines"]
# What belongs to `answers` alone.
OWN_OF_ANSWERS = ("adapters.", "judge.", "heads.answers.")

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
        self.dense = Linear(WIDTH, WIDTH)
        self.judge = Linear(WIDTH, WIDTH)
        self.adapters = adapters_of_layers()
        self.heads = nn.ModuleDict({name: Linear(WIDTH, classes) for name, classes in HEADS.items()})

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> dict[str, Tensor]:
        """The logits of all heads but `answers`, which share a layer."""
        mean = mean_over(self.body(ids, mask, segments), mask)
        read = functional.dropout(torch.tanh(self.dense(mean)), HEAD_DROPOUT, self.training)
        return {name: head(read) for name, head in self.heads.items() if name != "answers"}

    def answers(self, ids: Tensor, mask: Tensor, segments: Tensor) -> dict[str, Tensor]:
        mean = mean_over(self.body(ids, mask, segments, self.adapters), mask)
        judged = functional.dropout(torch.tanh(self.judge(mean)), HEAD_DROPOUT, self.training)
        return {"answers": self.heads["answers"](judged)}

    def train_answers_only(self) -> None:
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name.startswith(OWN_OF_ANSWERS))


@dataclass(frozen=True)
class Step:
    """A batch of one task, with the labels that the task has."""

    task: str
    batch: SegmentBatch
    labels: dict[str, Tensor]


class Tasks:
    """Draws the batches of an epoch."""

    def __init__(self, data: ReaderData, archives: Archives, arguments: argparse.Namespace) -> None:
        self.data = data
        self.archives = archives
        self.foreign = arguments.foreign
        self.answers_only = arguments.answers_only
        self.random = np.random.default_rng(arguments.seed)
        limit = arguments.limit
        sentences = np.flatnonzero(~data.sentence_is_held_out)[:limit]
        # Sentences of messages are few and hard: each comes twice.
        self.sentences = np.concatenate([sentences, sentences[data.sentence_is_in_message[sentences]]])
        self.pairs = np.flatnonzero(~data.pair_is_held_out)[:limit]
        # So are lines of small stores: three times.
        self.lines = np.tile(np.flatnonzero(~data.line_is_held_out)[:limit], 3)
        self.limit = limit

    def epoch(self) -> list[tuple[str, np.ndarray]]:
        batches = [
            *self._batches("sentences", self.sentences, SENTENCES_IN_A_BATCH),
            *self._batches("pairs", self.pairs, PAIRS_IN_A_BATCH),
            *self._batches("foreign", self.random.choice(self.pairs, self.foreign), PAIRS_IN_A_BATCH),
            *self._batches("questions", self._questions(), QUESTIONS_IN_A_BATCH),
            *self._batches("lines", self.lines, LINES_IN_A_BATCH),
        ]
        if self.answers_only:
            batches = [batch for batch in batches if batch[0] in TASKS_OF_ANSWERS]
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
        if task == "lines":
            return Step(task, self.data.line_batch(numbers), {"answers": self.data.lines_answer(numbers)})
        if task == "foreign":
            return Step("pairs", *self._foreign(numbers))
        turns = [self._turns(question) for question in numbers]
        first = [question_row(self.archives, question) for question in numbers for _ in range(TURNS_OF_A_QUESTION)]
        second = [turn_row(self.archives, turn) for group in turns for turn in group]
        return Step(task, segment_batch(first, second), {})

    def _foreign(self, numbers: np.ndarray) -> tuple[SegmentBatch, dict[str, Tensor]]:
        """New lines with old lines of another stream, which they leave alone."""
        others = self.random.choice(self.pairs, len(numbers))
        is_chinese = self.data.sentence_is_chinese[self.data.pair_sentence]
        far = np.abs(self.data.pair_sentence[others] - self.data.pair_sentence[numbers]) > LONGEST_STREAM
        kept = far & (is_chinese[others] == is_chinese[numbers])
        return self.data.pair_batch(numbers[kept], others[kept]), {
            "relation": torch.zeros(kept.sum(), dtype=torch.long)
        }

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
    torch.manual_seed(arguments.seed)
    archives = Archives(arguments.questions, device, arguments.limit)
    missing = sorted(set(QUESTIONS_IN_AN_EPOCH) - set(archives.sources))
    if missing:
        print(f"no questions of {', '.join(missing)}: trained without them")
    tasks = Tasks(ReaderData(arguments.data), archives, arguments)
    if arguments.start:
        start = read_weights(arguments.start)
        reader, teacher = reader_of(start, device), reader_of(start, device).eval()
    else:
        base = read_weights(arguments.base)
        mine_with_base(archives, base, device)
        reader, teacher = Reader(base).to(device), None
    if arguments.answers_only:
        reader.train_answers_only()
    train(reader, teacher, tasks, arguments, device)
    save_weights(arguments.out, reader)
    print(f"-> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="base.npz", help="the output of base.py (default: %(default)s)")
    parser.add_argument("--data", default="reader_data.npz", help="of reader_data.py (default: %(default)s)")
    parser.add_argument("--questions", default="encoder_data.npz", help="of encoder_data.py (default: %(default)s)")
    parser.add_argument("--out", default="reader.npz", help="the weights to write (default: %(default)s)")
    parser.add_argument("--start", help="weights of a trained reader to continue from (from_onnx.py)")
    parser.add_argument(
        "--hold",
        type=float,
        default=0.5,
        help="with --start: the weight of the former judgements (default: %(default)s)",
    )
    parser.add_argument(
        "--foreign", type=int, default=0, help="pairs of lines of different streams in an epoch (default: %(default)s)"
    )
    parser.add_argument("--rate", type=float, default=BODY_RATE, help="the body's peak rate (default: %(default)s)")
    parser.add_argument(
        "--heads", type=float, default=5, help="the heads' rate, in rates of the body (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, help="train for so long (default: five epochs)")
    parser.add_argument(
        "--int8",
        type=float,
        default=0.0,
        help="the last share of the training rounds as the int8 file does (default: %(default)s)",
    )
    parser.add_argument(
        "--answers-only", action="store_true", help="with --start: train nothing that another output uses"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, help="stop after this many, for a trial run (default: five epochs)")
    parser.add_argument("--limit", type=int, help="use only this many items of each task, for a trial run")
    parser.add_argument("--cpu", action="store_true", help="run on the processor, for a trial run")
    return parser.parse_args()


def reader_of(weights: dict[str, np.ndarray], device: torch.device) -> Reader:
    """A trained reader; a head that the weights lack starts anew."""
    body = {name.removeprefix("body."): array for name, array in weights.items() if name.startswith("body.")}
    reader = Reader(body)
    for name in HEADS:
        if f"heads.{name}.weight" not in weights:
            # The same start in every run, so that the runs can be averaged.
            nn.init.zeros_(reader.heads[name].weight)
            nn.init.zeros_(reader.heads[name].bias)
    reader.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()}, strict=False)
    return reader.to(device)


def mine_with_base(archives: Archives, base: dict[str, np.ndarray], device: torch.device) -> None:
    """The questions' hard negatives, as the untrained base ranks the turns."""
    body = Body().to(device)
    load_body(body, base)
    body.eval()

    def vectors(batch: Batch) -> Tensor:
        hidden = body(batch.ids, batch.mask).float()
        return functional.normalize(mean_over(hidden, batch.kept), dim=-1)

    archives.mine(vectors, vectors)


def train(
    reader: Reader, teacher: Reader | None, tasks: Tasks, arguments: argparse.Namespace, device: torch.device
) -> None:
    reader.train()
    trained = [(name, parameter) for name, parameter in reader.named_parameters() if parameter.requires_grad]
    heads = [parameter for name, parameter in trained if not name.startswith("body.")]
    body = [parameter for name, parameter in trained if name.startswith("body.")]
    optimizer = adam(device, body, arguments.rate, heads, arguments.heads * arguments.rate)
    in_epoch = len(tasks.epoch())
    total = arguments.steps or (EPOCHS * in_epoch if arguments.minutes is None else None)
    losses: dict[str, list[float]] = defaultdict(list)
    began = time.monotonic()
    is_rounded = False
    for number, step in enumerate(prefetch(tasks.steps(math.ceil(total / in_epoch) if total else MOST_EPOCHS)), 1):
        seconds = time.monotonic() - began
        done = number / total if total else seconds / 60 / arguments.minutes
        if done >= 1 - arguments.int8 and not is_rounded:
            is_rounded = True
            round_as_int8(reader)
        set_learning_rate(optimizer, min(1, number / WARM_UP) * max(0.02, 1 - done))
        loss = loss_of(reader, teacher, step, arguments.hold, device)
        descend(loss, reader, optimizer)
        if number % 20 == 0 or done >= 1:
            losses[step.task].append(loss.item())
        if number % in_epoch == 0 or done >= 1:
            means = {task: round(float(np.mean(values)), 3) for task, values in losses.items()}
            print(f"step {number}, {100 * min(done, 1):.0f} %: losses {means}, {seconds:.0f} s", flush=True)
            losses.clear()
        if done >= 1:
            break


def loss_of(reader: Reader, teacher: Reader | None, step: Step, hold: float, device: torch.device) -> Tensor:
    inputs = [tensor.to(device, non_blocking=True) for tensor in step.batch.tensors()]
    logits = judged(reader, step.task, inputs, device)
    labels = {name: tensor.to(device) for name, tensor in step.labels.items()}
    if step.task == "sentences":
        return sentence_loss(logits, labels)
    if step.task == "lines":
        return line_loss(logits["answers"], labels["answers"])
    former = None
    if teacher is not None:
        with torch.no_grad():
            former = judged(teacher, step.task, inputs, device)
    if step.task == "questions":
        return (
            answers_loss(logits["answers"])
            if former is None
            else divergence(logits["answers"], former["answers"]).mean()
        )
    weights = torch.tensor(RELATION_WEIGHTS, device=device)
    loss = functional.cross_entropy(
        logits["relation"], labels["relation"], weight=weights, label_smoothing=LABEL_SMOOTHING
    )
    if former is None:
        return loss
    # Only where the former judgement was right: the rest shall be learned.
    is_right = (former["relation"].argmax(1) == labels["relation"]).float()
    return loss + hold * (divergence(logits["relation"], former["relation"]) * is_right).mean()


def judged(reader: Reader, task: str, inputs: list[Tensor], device: torch.device) -> dict[str, Tensor]:
    with half_precision(device):
        logits = reader.answers(*inputs) if task in TASKS_OF_ANSWERS else reader(*inputs)
    return {name: tensor.float() for name, tensor in logits.items()}


def divergence(logits: Tensor, former: Tensor) -> Tensor:
    """How far the judgements are from the former ones, for each row."""
    return functional.kl_div(logits.log_softmax(1), former.log_softmax(1), reduction="none", log_target=True).sum(1)


def sentence_loss(logits: dict[str, Tensor], labels: dict[str, Tensor]) -> Tensor:
    losses = [
        weight * functional.cross_entropy(logits[head], labels[head], ignore_index=-1, label_smoothing=LABEL_SMOOTHING)
        for head, weight in SENTENCE_LOSSES.items()
        if (labels[head] >= 0).any()
    ]
    return torch.stack(losses).sum()


def line_loss(logits: Tensor, answers: Tensor) -> Tensor:
    weights = torch.tensor(ANSWER_WEIGHTS, device=logits.device)
    return functional.cross_entropy(logits, answers, weight=weights, label_smoothing=LABEL_SMOOTHING)


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
