"""The reader's data as batches of two segments, `[CLS] first [SEP] second [SEP]`; an empty first one is left out."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gloss import CLS, SEP
from rows import LENGTH_STEP

SENTENCE_HEADS = ["worth", "kind", "voice", "case", "alone"]


@dataclass(frozen=True)
class SegmentBatch:
    ids: Tensor
    mask: Tensor
    segments: Tensor

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.ids, self.mask, self.segments


class ReaderData:
    def __init__(self, path: str) -> None:
        with np.load(path) as file:
            self._stored = {name: file[name] for name in file.files}
        self._context = self._rows("context")
        self._sentence = self._rows("sentence")
        self._old = self._rows("old")
        self._new = self._rows("new")
        self._question = self._rows("question")
        self._line = self._rows("line")
        self.labels = {head: self._stored[head].astype(np.int64) for head in SENTENCE_HEADS}
        self.relation = self._stored["relation"].astype(np.int64)
        self.pair_sentence = self._stored["pair_sentence"]
        self.pair_is_held_out = self._stored["pair_is_held_out"]
        self.line_answers = self._stored["line_answers"].astype(np.int64)
        self.line_is_held_out = self._stored["line_is_held_out"]
        self.line_is_chinese = self._stored["line_is_chinese"]
        self.sentence_is_held_out = self._stored["sentence_is_held_out"]
        self.sentence_is_in_message = self._stored["sentence_is_in_message"]
        self.sentence_is_chinese = self._stored["sentence_is_chinese"]

    def sentence_batch(self, numbers: np.ndarray) -> SegmentBatch:
        contexts = [self._context[number] for number in numbers]
        return segment_batch(contexts, [self._sentence[number] for number in numbers])

    def sentence_labels(self, numbers: np.ndarray) -> dict[str, Tensor]:
        return {head: torch.from_numpy(labels[numbers]) for head, labels in self.labels.items()}

    def pair_batch(self, numbers: np.ndarray, old: np.ndarray | None = None) -> SegmentBatch:
        """The old and the new line of each pair; `old` names the pairs whose old lines are taken instead."""
        olds = [self._old[number] for number in (numbers if old is None else old)]
        return segment_batch(olds, [self._new[number] for number in numbers])

    def relations(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(self.relation[numbers])

    def line_batch(self, numbers: np.ndarray) -> SegmentBatch:
        """The questions with the lines of their stores."""
        return segment_batch([self._question[number] for number in numbers], [self._line[number] for number in numbers])

    def lines_answer(self, numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(self.line_answers[numbers])

    def _rows(self, name: str) -> list[np.ndarray]:
        ends = np.cumsum(self._stored[f"{name}_lengths"].astype(np.int64))
        return np.split(self._stored[f"{name}_pieces"].astype(np.int64), ends[:-1])


def segment_batch(first: list[np.ndarray], second: list[np.ndarray]) -> SegmentBatch:
    longest = max(len(before) + len(after) + 3 for before, after in zip(first, second))
    shape = (len(first), -(-longest // LENGTH_STEP) * LENGTH_STEP)
    ids, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    mask = np.zeros(shape, bool)
    for row, (before, after) in enumerate(zip(first, second)):
        opening = [CLS, *before, SEP] if len(before) else [CLS]
        pieces = [*opening, *after, SEP]
        ids[row, : len(pieces)] = pieces
        mask[row, : len(pieces)] = True
        segments[row, len(opening) : len(pieces)] = 1 if len(before) else 0
    return SegmentBatch(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(segments))
