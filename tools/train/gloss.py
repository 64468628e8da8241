"""Texts as word pieces: Chinese by the English glosses of its words, all else by the WordPiece vocabulary.

The tables are those that the binary embeds, so training and use cannot differ: `zh.bin` (words and glosses),
`simplified.bin` (traditional characters), `vocab.txt`, and the function words of `strata-models/src/lexicon/gloss.rs`.
`tests/test_gloss.py` compares the pieces with those that pin the Rust code.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokenizers.implementations import BertWordPieceTokenizer

CRATES = Path(__file__).resolve().parents[2] / "crates"
VOCABULARY = CRATES / "strata-models/data/vocab.txt"
DICTIONARY = CRATES / "strata-models/data/zh.bin"
SIMPLIFIED = CRATES / "strata-language/data/simplified.bin"
FUNCTION_WORDS = CRATES / "strata-models/src/lexicon/gloss.rs"

CLS = 101
SEP = 102

HAN = re.compile(r"[\u3400-\u9fff]")
RUNS = re.compile(r"[\u3400-\u9fff]+|[^\u3400-\u9fff]+")
WESTERN = str.maketrans("，。？！、：", ",.?!,:")

LONGEST_WORD = 8
MOST_GLOSS_PIECES = 4
# Logarithms of probabilities: the least of a long function word, that of a short one that the dictionary does not have,
# and that of a character that no table has.
LEAST_LONG_FUNCTION_WORD = -4.5
SHORT_FUNCTION_WORD = -4.0
UNKNOWN_CHARACTER = -11.0


@dataclass(frozen=True)
class Entry:
    log_probability: float
    first_sense: list[int]


def is_chinese(text: str) -> bool:
    return HAN.search(text) is not None


class Pieces:
    """Turns a text into the ids of its word pieces, without special pieces."""

    def __init__(self) -> None:
        self._tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        self._glosses = Glosses(self._latin)

    def of(self, text: str) -> list[int]:
        return self._glosses.pieces(text) if is_chinese(text) else self._latin(text)

    def first(self, text: str, most: int) -> list[int]:
        return self.of(text)[:most]

    def last(self, text: str, most: int) -> list[int]:
        return self.of(text)[-most:]

    def punctuation(self) -> list[int]:
        marks = [mark for mark in map(chr, range(33, 127)) if not mark.isalnum()]
        return [self._tokenizer.token_to_id(mark) for mark in marks]

    def _latin(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


class Glosses:
    """Chinese words in their order as English pieces. `latin` gives the pieces of a text that is not Chinese."""

    def __init__(self, latin: Callable[[str], list[int]]) -> None:
        self._latin = latin
        self._entries = read_dictionary(DICTIONARY.read_bytes())
        self._simplified = read_simplified(SIMPLIFIED.read_bytes())
        self._function_words = read_function_words(FUNCTION_WORDS.read_text(encoding="utf-8"))

    def pieces(self, text: str) -> list[int]:
        simplified = "".join(self._simplified.get(character, character) for character in text)
        pieces: list[int] = []
        for run in RUNS.findall(simplified):
            if not is_chinese(run):
                pieces += self._latin(run.translate(WESTERN))
                continue
            for word in self.words(run):
                pieces += self._word_pieces(word)
        return pieces

    def words(self, run: str) -> list[str]:
        """The most probable division of a run of Chinese characters."""
        best = [(0.0, 0)] + [(float("-inf"), 0)] * len(run)
        for start in range(len(run)):
            for end in range(start + 1, min(start + LONGEST_WORD, len(run)) + 1):
                log_probability = self._log_probability(run[start:end])
                if log_probability is not None and best[start][0] + log_probability > best[end][0]:
                    best[end] = (best[start][0] + log_probability, start)
        words = []
        end = len(run)
        while end > 0:
            start = best[end][1]
            words.append(run[start:end])
            end = start
        return words[::-1]

    def _log_probability(self, word: str) -> float | None:
        entry = self._entries.get(word)
        known = None if entry is None else entry.log_probability
        if word in self._function_words:
            if len(word) == 1:
                return SHORT_FUNCTION_WORD if known is None else known
            return max(LEAST_LONG_FUNCTION_WORD, LEAST_LONG_FUNCTION_WORD if known is None else known)
        if known is None and len(word) == 1:
            return UNKNOWN_CHARACTER
        return known

    def _word_pieces(self, word: str) -> list[int]:
        if word in self._function_words:
            return self._latin(self._function_words[word])
        entry = self._entries.get(word)
        return [] if entry is None else entry.first_sense[:MOST_GLOSS_PIECES]


def read_dictionary(content: bytes) -> dict[str, Entry]:
    """The words of `zh.bin`; `crates/strata-models/data/README.md` describes its form."""
    word_count, character_count, piece_count = struct.unpack_from("<III", content, 8)
    lengths = content[24 : 24 + word_count]
    probabilities = content[24 + word_count : 24 + 2 * word_count]
    gloss_lengths = content[24 + 2 * word_count : 24 + 3 * word_count]
    at = 24 + 3 * word_count + (3 * word_count) % 2
    characters = content[at : at + 2 * character_count].decode("utf-16-le")
    pieces = struct.unpack_from(f"<{piece_count}H", content, at + 2 * character_count)
    entries = {}
    character = piece = 0
    for length, probability, gloss_length in zip(lengths, probabilities, gloss_lengths):
        gloss = list(pieces[piece : piece + gloss_length])
        log_probability = -10.0 if probability == 255 else -probability / 25.0
        entries[characters[character : character + length]] = Entry(log_probability, _first_sense(gloss))
        character += length
        piece += gloss_length
    return entries


def _first_sense(gloss: list[int]) -> list[int]:
    """Zeros separate the senses of a gloss."""
    sense: list[int] = []
    for piece in gloss:
        if piece == 0 and sense:
            break
        if piece != 0:
            sense.append(piece)
    return sense


def read_simplified(content: bytes) -> dict[str, str]:
    units = struct.unpack(f"<{len(content) // 2}H", content)
    return {chr(traditional): chr(simple) for traditional, simple in zip(units[::2], units[1::2])}


def read_function_words(source: str) -> dict[str, str]:
    """The list `FUNCTION_WORDS` of the Rust source: `word=gloss`, with `_` for a space."""
    found = re.search(r'const FUNCTION_WORDS: &str = "(.+?)";', source, re.DOTALL)
    if found is None:
        raise ValueError(f"`{FUNCTION_WORDS}` has no constant `FUNCTION_WORDS`; correct `read_function_words`")
    pairs = [pair.split("=", 1) for pair in found[1].replace("\\\n", " ").split()]
    return {word: gloss.replace("_", " ") for word, gloss in pairs}
