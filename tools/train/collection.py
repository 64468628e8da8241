"""Archives of turns with questions that some of the turns answer: the data of the encoder, and their stored form."""

import re
from dataclasses import dataclass, field

import numpy as np

from formats import Turn
from gloss import Pieces

SOURCES = ["question", "situation", "change", "persona_chat", "qmsum", "schema_guided", "squad"]
LONGEST_TURN = 120
LONGEST_QUESTION = 96


@dataclass(frozen=True)
class Asked:
    archive: int
    text: str
    turns: list[int]
    source: str


@dataclass
class Collection:
    turns: list[Turn] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    archive_starts: list[int] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def add_archive(self, sessions: list[list[Turn]]) -> list[int]:
        """The place of the first turn of each session among all turns."""
        self.archive_starts.append(len(self.turns))
        starts = []
        for session in sessions:
            starts.append(len(self.turns))
            for number, turn in enumerate(session):
                self.before.append(len(self.turns) - 1 if number else -1)
                self.turns.append(turn)
        return starts

    def ask(self, text: str, turns: list[int], source: str) -> None:
        """A question to the archive that was added last; `turns` are places among all turns."""
        text = re.sub(r"\s+", " ", text).strip()
        if text and turns:
            self.asked.append(Asked(len(self.archive_starts) - 1, text, sorted(set(turns)), source))

    def arrays(self, pieces: Pieces) -> dict[str, np.ndarray]:
        spoken = [f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in self.turns]
        turns = flat_rows([pieces.first(text, LONGEST_TURN) for text in spoken])
        questions = flat_rows([pieces.first(asked.text, LONGEST_QUESTION) for asked in self.asked])
        answers = flat_rows([asked.turns for asked in self.asked], np.int32)
        return {
            "turn_pieces": turns[0],
            "turn_lengths": turns[1],
            "turn_before": np.array(self.before, np.int32),
            "archive_starts": np.array([*self.archive_starts, len(self.turns)], np.int32),
            "question_pieces": questions[0],
            "question_lengths": questions[1],
            "question_archives": np.array([asked.archive for asked in self.asked], np.int32),
            "question_sources": np.array([SOURCES.index(asked.source) for asked in self.asked], np.uint8),
            "answers": answers[0],
            "answer_counts": answers[1],
        }


def flat_rows(rows: list[list[int]], kind: type = np.uint16) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as one array and their lengths."""
    flat = np.array([value for row in rows for value in row], kind)
    return flat, np.array([len(row) for row in rows], np.uint16)
