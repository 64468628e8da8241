"""Makes the reader's training data: labelled sentences in their context, pairs of an old and a new line, and questions with
lines of a small store that answer them or do not.

All of it was written for Strata. The encoder's questions, with which the reader trains too, come from encoder_data.py.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from collection import flat_rows
from formats import (
    CASE_ROLES,
    KINDS,
    VOICES,
    Case,
    Message,
    Reply,
    SmallStore,
    Stream,
    StreamLine,
    held_out,
    read_cases,
    read_messages,
    read_replies,
    read_stores,
    read_streams,
)
from gloss import SEP, Pieces, is_chinese
from questions import in_third_person

SEED = 11
UNLABELLED = -1
WORTH_OF_MARK = {"+": 1, "~": 1, "-": 1, "=": UNLABELLED, ".": 0, "?": 0}
VOICE_OF_MARK = {"+": "o", "~": "o", "-": "o", "?": "r"}
RELATIONS = {"=": 1, "~": 2, "-": 3}

LONGEST_SENTENCE = 96
LONGEST_OF_A_PAIR = 80
LONGEST_QUESTION = 64
LONGEST_ANSWER = 110
CONTEXT_BEFORE = 40
CONTEXT_BEFORE_IN_MESSAGE = 60
CONTEXT_AFTER = 40
PAIR_CONTEXT = 24

# Lines that the new line leaves alone, for each line of the training part: those that share most words, and others.
NEAR_NEGATIVES = 5
FAR_NEGATIVES = 3

# Lines that do not answer a question, for each question of the training part.
NEAR_LINES = 4
FAR_LINES = 2

REWORDED_SHARE = 0.35
DATE = re.compile(r"\[[^\]]*\] *")
SPEAKER = re.compile(r"(user|assistant): ")
MEMORY_STARTS = ("The user", "用户", "用戶")
THIRD_PERSONS = ["the user"] * 3 + (
    "Anna Ben Clara David Emma Hugo Ivy Leo Maria Nathan Ravi Sofia Tom Priya Ahmed Chen Akira Diego Lena Omar".split()
)


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence as the network reads it. A label is -1 where the sentence does not train its head."""

    text: str
    before: str
    after: str
    worth: int
    kind: int
    voice: int
    case: int
    alone: int
    is_held_out: bool
    is_in_message: bool
    is_chinese: bool


@dataclass(frozen=True)
class Pair:
    """An old line and a new one. `sentence` is the place of the new line among the sentences."""

    old: str
    new: str
    before: str
    relation: int
    sentence: int
    is_held_out: bool


@dataclass(frozen=True)
class AskedLine:
    """A question and a line of its store, `before` the line before it where the line is read with it."""

    question: str
    before: str
    line: str
    answers: bool
    is_held_out: bool
    is_chinese: bool


def main() -> None:
    arguments = parse_arguments()
    sentences: list[LabelledSentence] = []
    pairs: list[Pair] = []
    random = Random(SEED)
    for stream in sorted(read_streams(arguments.data / "streams"), key=lambda stream: stream.language):
        pairs += stream_pairs(stream, len(sentences), random)
        sentences += stream_sentences(stream)
    for case in read_cases(arguments.data / "cases"):
        sentences += case_sentences(case)
    for message in read_messages(arguments.data / "messages"):
        sentences += message_sentences(message)
    for reply in read_replies(arguments.data / "standing"):
        sentences += reply_sentences(reply)
    pairs += list(reworded(pairs, random))
    asked = [line for store in read_stores(arguments.data / "stores") for line in asked_lines(store, random)]
    np.savez_compressed(arguments.out, **arrays(sentences, pairs, asked, Pieces()))
    held = sum(sentence.is_held_out for sentence in sentences), sum(pair.is_held_out for pair in pairs)
    print(f"{len(sentences):,} sentences ({held[0]:,} held out), {len(pairs):,} pairs ({held[1]:,} held out)")
    print(f"{len(asked):,} lines asked for, of which {sum(line.answers for line in asked):,} answer")
    print(f"relations {dict(Counter(pair.relation for pair in pairs))} -> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = Path(__file__).resolve().parent / "data"
    parser.add_argument("--data", type=Path, default=folder, help="the folder of the data (default: the one here)")
    parser.add_argument("--out", default="reader_data.npz", help="the file to write (default: %(default)s)")
    return parser.parse_args()


def stream_sentences(stream: Stream) -> Iterator[LabelledSentence]:
    for number, line in enumerate(stream.lines):
        yield LabelledSentence(
            text=f"user: {line.text}",
            before=stream.lines[number - 1].text if number else "",
            after="",
            worth=WORTH_OF_MARK[line.mark],
            kind=KINDS.index(line.kind) if line.kind else UNLABELLED,
            voice=VOICES.index(VOICE_OF_MARK[line.mark]) if line.mark in VOICE_OF_MARK else UNLABELLED,
            case=UNLABELLED,
            alone=UNLABELLED,
            is_held_out=held_out(stream.id),
            is_in_message=False,
            is_chinese=stream.language == "zh",
        )


def case_sentences(case: Case) -> Iterator[LabelledSentence]:
    before = ""
    for sentence in case.sentences:
        text = f"{sentence.speaker}: {sentence.text}"
        yield LabelledSentence(
            text=text,
            before=before,
            after="",
            worth=0 if sentence.label in ".?" else UNLABELLED,
            kind=UNLABELLED,
            voice=UNLABELLED,
            case=CASE_ROLES.index(sentence.label),
            alone=UNLABELLED,
            is_held_out=held_out(case.id),
            is_in_message=False,
            is_chinese=case.language == "zh",
        )
        before = text


def message_sentences(message: Message) -> Iterator[LabelledSentence]:
    texts = [sentence.text for sentence in message.sentences]
    for number, sentence in enumerate(message.sentences):
        yield LabelledSentence(
            text=f"user: {sentence.text}",
            before=" ".join(texts[:number]),
            after=" ".join(texts[number + 1 :]),
            worth=int(sentence.label in "oi"),
            kind=KINDS.index("c") if sentence.label == "i" else UNLABELLED,
            voice=VOICES.index(sentence.label),
            case=UNLABELLED,
            alone=UNLABELLED,
            is_held_out=held_out(message.id),
            is_in_message=True,
            is_chinese=message.language == "zh",
        )


def reply_sentences(reply: Reply) -> Iterator[LabelledSentence]:
    """Each sentence twice: in the midst of its message, and after nothing but the message that it replies to."""
    texts = [sentence.text for sentence in reply.sentences]
    for number, sentence in enumerate(reply.sentences):
        before = " ".join(texts[:number]) or reply.before
        for context, after in ((before, " ".join(texts[number + 1 :])), (reply.before, "")):
            yield LabelledSentence(
                text=f"user: {sentence.text}",
                before=context,
                after=after,
                worth=UNLABELLED,
                kind=UNLABELLED,
                voice=UNLABELLED,
                case=UNLABELLED,
                alone=int(sentence.label == "y"),
                is_held_out=held_out(reply.id),
                is_in_message=len(texts) > 1 and bool(number or after),
                is_chinese=reply.language == "zh",
            )


def stream_pairs(stream: Stream, first_sentence: int, random: Random) -> Iterator[Pair]:
    """Each line with the line that it changes, and with current lines that it leaves alone: all, where held out."""
    is_held_out = held_out(stream.id)
    current: dict[int, bool] = {}
    for number, line in enumerate(stream.lines):
        before = stream.lines[number - 1].text if number else ""
        others = [other for other, is_current in current.items() if is_current and other != line.target]
        if not is_held_out:
            others = chosen_negatives(stream.lines, line, others, random)
        targets = [] if line.target is None else [line.target]
        for other in targets + others:
            relation = RELATIONS[line.mark] if other == line.target else 0
            yield Pair(stream.lines[other].text, line.text, before, relation, first_sentence + number, is_held_out)
        if line.mark in "~-":
            current[line.target] = False
        current[number] = line.mark in "+~"


def chosen_negatives(lines: list[StreamLine], line: StreamLine, others: list[int], random: Random) -> list[int]:
    words = words_of(line.text)
    nearest = sorted(others, key=lambda other: random.random() * 0.5 - len(words & words_of(lines[other].text)))
    far = nearest[NEAR_NEGATIVES:]
    return nearest[:NEAR_NEGATIVES] + random.sample(far, min(FAR_NEGATIVES, len(far)))


def asked_lines(store: SmallStore, random: Random) -> Iterator[AskedLine]:
    """The lines that answer a question, and some that do not: all, where held out.

    Every second turn is read with the line before it; a memory stands alone.
    """
    is_held_out = held_out(store.id)
    for question in store.questions:
        words = words_of(question.text)
        others = [number for number in range(len(store.lines)) if number not in question.lines]
        if not is_held_out:
            others.sort(key=lambda number: random.random() * 1.5 - len(words & words_of(store.lines[number])))
            far = others[NEAR_LINES:]
            others = others[:NEAR_LINES] + random.sample(far, min(FAR_LINES, len(far)))
        for number in question.lines + others:
            line = spoken(store.lines[number])
            has_context = number and not is_memory(line) and random.random() < 0.5
            before = spoken(store.lines[number - 1]) if has_context else ""
            is_answer = number in question.lines
            yield AskedLine(question.text, before, line, is_answer, is_held_out, store.language == "zh")


def spoken(line: str) -> str:
    """A line as recall gives it to the reader: a turn begins with its speaker, a memory is left as it is."""
    line = DATE.sub("", line)
    return line if is_memory(line) or SPEAKER.match(line) else f"user: {line}"


def is_memory(line: str) -> bool:
    return line.startswith(MEMORY_STARTS)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def reworded(pairs: list[Pair], random: Random) -> Iterator[Pair]:
    """Some pairs again, with the old line in the third person, as a memory may state it."""
    for pair in pairs:
        if not pair.is_held_out and random.random() < REWORDED_SHARE and not is_chinese(pair.old):
            old = in_third_person(pair.old, random.choice(THIRD_PERSONS), random)
            old = old[:1].upper() + old[1:]
            yield Pair(old, pair.new, pair.before, pair.relation, pair.sentence, pair.is_held_out)


def arrays(
    sentences: list[LabelledSentence], pairs: list[Pair], asked: list[AskedLine], pieces: Pieces
) -> dict[str, np.ndarray]:
    rows = {
        "context": [sentence_context(sentence, pieces) for sentence in sentences],
        "sentence": [pieces.first(sentence.text, LONGEST_SENTENCE) for sentence in sentences],
        "old": [pieces.first(pair.old, LONGEST_OF_A_PAIR) for pair in pairs],
        "new": [new_with_context(pair, pieces) for pair in pairs],
        "question": [pieces.first(line.question, LONGEST_QUESTION) for line in asked],
        "line": [line_with_context(line, pieces) for line in asked],
    }
    stored = {}
    for name, own_rows in rows.items():
        stored[f"{name}_pieces"], stored[f"{name}_lengths"] = flat_rows(own_rows)
    for label in ("worth", "kind", "voice", "case", "alone"):
        stored[label] = np.array([getattr(sentence, label) for sentence in sentences], np.int8)
    for flag in ("is_held_out", "is_in_message", "is_chinese"):
        stored[f"sentence_{flag}"] = np.array([getattr(sentence, flag) for sentence in sentences], bool)
    stored["relation"] = np.array([pair.relation for pair in pairs], np.int8)
    stored["pair_sentence"] = np.array([pair.sentence for pair in pairs], np.int32)
    stored["pair_is_held_out"] = np.array([pair.is_held_out for pair in pairs], bool)
    stored["line_answers"] = np.array([line.answers for line in asked], np.int8)
    stored["line_is_held_out"] = np.array([line.is_held_out for line in asked], bool)
    stored["line_is_chinese"] = np.array([line.is_chinese for line in asked], bool)
    return stored


def sentence_context(sentence: LabelledSentence, pieces: Pieces) -> list[int]:
    most = CONTEXT_BEFORE_IN_MESSAGE if sentence.is_in_message else CONTEXT_BEFORE
    before = pieces.last(sentence.before, most)
    return before + [SEP] + pieces.first(sentence.after, CONTEXT_AFTER) if sentence.after else before


def new_with_context(pair: Pair, pieces: Pieces) -> list[int]:
    new = pieces.first(pair.new, LONGEST_OF_A_PAIR)
    return pieces.last(pair.before, PAIR_CONTEXT) + [SEP] + new if pair.before else new


def line_with_context(line: AskedLine, pieces: Pieces) -> list[int]:
    own = pieces.first(line.line, LONGEST_ANSWER)
    return pieces.last(line.before, PAIR_CONTEXT) + [SEP] + own if line.before else own


if __name__ == "__main__":
    main()
