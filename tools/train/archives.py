"""The encoder's data as training reads them: questions, their answers, and the hard negatives of the same archive."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from collection import LONGEST_QUESTION, LONGEST_TURN, SOURCES
from network import WIDTH, half_precision
from rows import Batch, Rows

CONTEXT = 40
MOST_ANSWERS = 6
MOST_NEGATIVES = 24
# A turn that scores nearly as high as an answer may be one that nobody marked.
SURELY_WRONG = 0.97
ENCODED_AT_ONCE = 1024

Vectors = Callable[[Batch], Tensor]


class Archives:
    def __init__(self, path: str, device: torch.device, limit: int | None) -> None:
        with np.load(path) as file:
            stored = {name: file[name] for name in file.files}
        if limit is not None:
            stored = first_questions(stored, limit)
        self.turns = Rows(stored["turn_pieces"], stored["turn_lengths"], device, stored["turn_before"])
        self.questions = Rows(stored["question_pieces"], stored["question_lengths"], device)
        self.archive_starts = stored["archive_starts"].astype(np.int64)
        self.question_archives = stored["question_archives"]
        self.sources = np.array(SOURCES)[stored["question_sources"]]
        self.answers = answer_table(stored["answers"], stored["answer_counts"])
        self.negatives = np.full((len(self.questions), MOST_NEGATIVES), -1, np.int64)

    def archive_of(self, questions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first turn of the archive of each question, and the turn after its last."""
        archives = self.question_archives[questions]
        return self.archive_starts[archives], self.archive_starts[archives + 1]

    def mine(self, turn_vectors: Vectors, question_vectors: Vectors) -> None:
        """Finds for each question the turns of its archive that score highest and do not answer it."""
        vectors = encode_turns(self.turns, turn_vectors)
        self.negatives[:] = -1
        by_archive = np.argsort(self.question_archives, kind="stable")
        borders = np.searchsorted(self.question_archives[by_archive], np.arange(len(self.archive_starts)))
        for archive in range(len(self.archive_starts) - 1):
            questions = by_archive[borders[archive] : borders[archive + 1]]
            start, end = self.archive_starts[archive], self.archive_starts[archive + 1]
            if len(questions) == 0 or end - start < 3:
                continue
            with torch.no_grad(), half_precision(self.turns.device):
                asked = question_vectors(self.questions.pack(questions, LONGEST_QUESTION)).float()
            scores = asked @ vectors[start:end].float().T
            found = hardest(scores, self._answers_within(questions, start, scores))
            self.negatives[questions, : found.shape[1]] = np.where(found >= 0, found + start, -1)

    def _answers_within(self, questions: np.ndarray, start: int, scores: Tensor) -> Tensor:
        answers = self.answers[questions]
        row, column = np.nonzero(answers >= 0)
        is_answer = torch.zeros_like(scores, dtype=torch.bool)
        is_answer[torch.from_numpy(row), torch.from_numpy(answers[row, column] - start)] = True
        return is_answer


def hardest(scores: Tensor, is_answer: Tensor) -> np.ndarray:
    """The columns with the highest scores that are surely no answers, at most 24; -1 where there are fewer."""
    best_answer = scores.masked_fill(~is_answer, -1).max(1, keepdim=True).values
    excluded = is_answer | (scores > SURELY_WRONG * best_answer)
    values, columns = scores.masked_fill(excluded, -2).topk(min(MOST_NEGATIVES, scores.shape[1]), 1)
    return torch.where(values > -1.5, columns, -1).cpu().numpy()


def encode_turns(turns: Rows, vectors_of: Vectors) -> Tensor:
    """The vectors of all turns in half precision, encoded in the order of their lengths."""
    vectors = torch.zeros(len(turns), WIDTH, device=turns.device, dtype=torch.float16)
    order = np.argsort(turns.packed_lengths(np.arange(len(turns)), LONGEST_TURN, CONTEXT), kind="stable")
    with torch.no_grad(), half_precision(turns.device):
        for start in range(0, len(order), ENCODED_AT_ONCE):
            numbers = order[start : start + ENCODED_AT_ONCE]
            batch = turns.pack(numbers, LONGEST_TURN, CONTEXT)
            vectors[torch.from_numpy(numbers).to(turns.device)] = vectors_of(batch).half()
    return vectors


def answer_table(answers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The first six answers of each question, a row for each; -1 where there are fewer."""
    starts = np.cumsum(counts.astype(np.int64)) - counts
    table = np.full((len(counts), MOST_ANSWERS), -1, np.int64)
    for number in range(MOST_ANSWERS):
        has_answer = counts > number
        table[has_answer, number] = answers[starts[has_answer] + number]
    return table


def first_questions(stored: dict[str, np.ndarray], limit: int) -> dict[str, np.ndarray]:
    """The first questions and the archives up to the last that they need, for a trial run."""
    archives = int(stored["question_archives"][:limit].max()) + 1
    turns = int(stored["archive_starts"][archives])
    turn_pieces = int(stored["turn_lengths"][:turns].sum(dtype=np.int64))
    question_pieces = int(stored["question_lengths"][:limit].sum(dtype=np.int64))
    answers = int(stored["answer_counts"][:limit].sum(dtype=np.int64))
    ends = {"archive_starts": archives + 1, "turn_pieces": turn_pieces, "question_pieces": question_pieces}
    ends |= {"turn_lengths": turns, "turn_before": turns, "answers": answers}
    return {name: array[: ends.get(name, limit)] for name, array in stored.items()}
