"""Rows of word pieces of different lengths, kept flat on the device and packed into batches there."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gloss import CLS, SEP

# Lengths of batches are multiples of this, which suits a GPU.
LENGTH_STEP = 8


@dataclass(frozen=True)
class Batch:
    """`mask` is true for real pieces. `kept` leaves the context out: it is read, but not averaged."""

    ids: Tensor
    mask: Tensor
    kept: Tensor


class Rows:
    def __init__(
        self, pieces: np.ndarray, lengths: np.ndarray, device: torch.device, before: np.ndarray | None = None
    ) -> None:
        self.device = device
        self._host_lengths = lengths.astype(np.int64)
        self._host_before = before
        self._host_rows = np.split(pieces.astype(np.int64), np.cumsum(self._host_lengths)[:-1])
        self.pieces = torch.from_numpy(pieces.astype(np.int64)).to(device)
        self.lengths = torch.from_numpy(self._host_lengths).to(device)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.before = None if before is None else torch.from_numpy(before.astype(np.int64)).to(device)

    def __len__(self) -> int:
        return len(self.lengths)

    def row(self, number: int) -> np.ndarray:
        return self._host_rows[number]

    def row_before(self, number: int) -> np.ndarray | None:
        before = self._host_before[number]
        return None if before < 0 else self._host_rows[before]

    def packed_lengths(self, numbers: np.ndarray, longest: int, context: int) -> np.ndarray:
        """About the number of pieces of each packed row, without a transfer from the device."""
        lengths = np.minimum(self._host_lengths[numbers], longest)
        if context:
            before = self._host_before[numbers]
            lengths = lengths + np.where(before >= 0, np.minimum(self._host_lengths[before], context), 0)
        return lengths

    def pack(self, numbers: np.ndarray, longest: int, context: int = 0) -> Batch:
        """`[CLS] row [SEP]`, with `context` as `[CLS] end of the row before [SEP] row [SEP]` where there is one."""
        number = torch.from_numpy(np.asarray(numbers, np.int64)).to(self.device)
        length = self.lengths[number].clamp(max=longest)[:, None]
        begin = torch.ones_like(length)
        if context:
            before = self.before[number].clamp(min=0)
            has_before = (self.before[number] >= 0)[:, None]
            context_length = self.lengths[before].clamp(max=context)[:, None] * has_before
            context_start = (self.starts[before] + self.lengths[before])[:, None] - context_length
            begin = torch.where(has_before, context_length + 2, begin)
        total = int((begin + length).max()) + 1
        total = -(-total // LENGTH_STEP) * LENGTH_STEP
        place = torch.arange(total, device=self.device)[None]
        inside = (place >= begin) & (place < begin + length)
        ids = torch.where(inside, self._pieces_at(self.starts[number][:, None] + place - begin), 0)
        ids = torch.where(place == begin + length, SEP, ids)
        if context:
            in_context = (place >= 1) & (place < 1 + context_length)
            ids = torch.where(in_context, self._pieces_at(context_start + place - 1), ids)
            ids = torch.where(has_before & (place == context_length + 1), SEP, ids)
        ids[:, 0] = CLS
        is_own = (place >= begin) & (place <= begin + length)
        return Batch(ids, place <= begin + length, is_own | (place == 0))

    def _pieces_at(self, places: Tensor) -> Tensor:
        return self.pieces[places.clamp(0, len(self.pieces) - 1)]
