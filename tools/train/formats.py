"""The six text formats of the training data, and the rule that holds a tenth of it out.

README.md describes the formats. A line that fits no format is an error that names its file and line.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Record = TypeVar("Record")

KINDS = "fpstderwc"
VOICES = "ocmfhri"
CASE_ROLES = "fwnhxovuadtk.?"
SPEAKERS = {"U": "user", "A": "assistant"}

HEADING = re.compile(r"# (\S+)((?: \| [^|]+)+)$")
DIALOGUE_TURN = re.compile(r"(\d+) ([AB]): (.+)$")
DIALOGUE_QUESTION = re.compile(r"([?!]) (.+) \| ([\d, ]+)$")
STREAM_LINE = re.compile(rf"(?:(\+)([{KINDS}])|([~=-])(\d+)|([.?]))\s+(.+)$")
CASE_LINE = re.compile(r"([fwnhxovuadtk.?]) ([UA]): (.+)$")
MESSAGE_LINE = re.compile(rf"([{VOICES}]) (.+)$")
REPLY_LINE = re.compile(r"([byn]) (.+)$")
STORE_LINE = re.compile(r"(\d+) (.+)$")
STORE_QUESTION = re.compile(r"\? (.+) \|([\d, ]*)$")


@dataclass(frozen=True)
class Turn:
    speaker: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, or a new situation in which some turns matter. `turns` are places in the whole dialogue, from 0."""

    text: str
    turns: list[int]
    is_situation: bool


@dataclass
class Dialogue:
    id: str
    speakers: tuple[str, str]
    sessions: list[list[Turn]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


@dataclass(frozen=True)
class StreamLine:
    """`mark` is one of `+ ~ - = . ?`; `kind` belongs to `+`, `target` (a place in the stream, from 0) to `~ - =`."""

    mark: str
    kind: str | None
    target: int | None
    text: str


@dataclass
class Stream:
    id: str
    language: str
    lines: list[StreamLine] = field(default_factory=list)


@dataclass(frozen=True)
class Sentence:
    label: str
    speaker: str
    text: str


@dataclass
class Case:
    id: str
    language: str
    sentences: list[Sentence] = field(default_factory=list)


@dataclass
class Message:
    id: str
    language: str
    sentences: list[Sentence] = field(default_factory=list)


@dataclass
class Reply:
    """A message, sentence by sentence, with the other speaker's message `before` it, which may be empty.

    The label of a sentence is `y` if it tells its content when it is read alone, else `n`.
    """

    id: str
    language: str
    before: str = ""
    sentences: list[Sentence] = field(default_factory=list)


@dataclass(frozen=True)
class StoreQuestion:
    """A question of a small store. `lines` are the places, from 0, of the lines that answer it; there may be none."""

    text: str
    lines: list[int]


@dataclass
class SmallStore:
    """What is remembered of one person, line by line, and questions."""

    id: str
    language: str
    lines: list[str] = field(default_factory=list)
    questions: list[StoreQuestion] = field(default_factory=list)


def held_out(identifier: str) -> bool:
    """Whether a record is kept for measuring: one in ten, by a hash of its id."""
    return int(hashlib.sha256(identifier.encode()).hexdigest(), 16) % 10 == 0


def read_dialogues(folder: Path) -> list[Dialogue]:
    return _read(folder, _begin_dialogue, _add_to_dialogue)


def read_streams(folder: Path) -> list[Stream]:
    return _read(folder, lambda name, rest: Stream(name, rest[0]), _add_to_stream)


def read_cases(folder: Path) -> list[Case]:
    return _read(folder, lambda name, rest: Case(name, rest[0]), _add_to_case)


def read_messages(folder: Path) -> list[Message]:
    return _read(folder, lambda name, rest: Message(name, rest[0]), _add_to_message)


def read_replies(folder: Path) -> list[Reply]:
    return _read(folder, lambda name, rest: Reply(name, rest[0]), _add_to_reply)


def read_stores(folder: Path) -> list[SmallStore]:
    return _read(folder, lambda name, rest: SmallStore(name, rest[0]), _add_to_store)


def _read(folder: Path, begin: Callable[[str, list[str]], Record], add: Callable[[Record, str], bool]) -> list[Record]:
    records: list[Record] = []
    for place, line in _lines(folder):
        if line.startswith("# "):
            heading = HEADING.match(line)
            if heading is None:
                raise ValueError(f"{place}: `{line}` is no heading; write `# id | ...`")
            records.append(begin(heading[1], [part.strip() for part in heading[2].split("|")[1:]]))
        elif not records or not add(records[-1], line):
            raise ValueError(f"{place}: `{line}` fits no format; README.md describes them")
    return records


def _lines(folder: Path) -> Iterator[tuple[str, str]]:
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise ValueError(f"`{folder}` has no file `*.txt`; name the folder of the data")
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip():
                yield f"{file}:{number}", line.strip()


def _begin_dialogue(name: str, rest: list[str]) -> Dialogue:
    if len(rest) != 2:
        raise ValueError(f"the dialogue `{name}` does not name its two speakers")
    return Dialogue(name, (rest[0], rest[1]))


def _add_to_dialogue(dialogue: Dialogue, line: str) -> bool:
    if line.startswith("@ "):
        dialogue.sessions.append([])
        return True
    if turn := DIALOGUE_TURN.match(line):
        if not dialogue.sessions:
            dialogue.sessions.append([])
        dialogue.sessions[-1].append(Turn(dialogue.speakers["AB".index(turn[2])], turn[3]))
        return True
    if question := DIALOGUE_QUESTION.match(line):
        count = sum(map(len, dialogue.sessions))
        numbers = [int(number) for number in question[3].split(",") if number.strip()]
        turns = [number - 1 for number in numbers if 0 < number <= count]
        dialogue.questions.append(Question(question[2], turns, question[1] == "!"))
        return True
    return False


def _add_to_stream(stream: Stream, line: str) -> bool:
    match = STREAM_LINE.match(line)
    if match is None:
        return False
    target = int(match[4]) - 1 if match[4] else None
    if target is not None and not 0 <= target < len(stream.lines):
        return False
    stream.lines.append(StreamLine(match[1] or match[3] or match[5], match[2], target, match[6]))
    return True


def _add_to_case(case: Case, line: str) -> bool:
    match = CASE_LINE.match(line)
    if match is None:
        return False
    case.sentences.append(Sentence(match[1], SPEAKERS[match[2]], match[3]))
    return True


def _add_to_message(message: Message, line: str) -> bool:
    match = MESSAGE_LINE.match(line)
    if match is None:
        return False
    message.sentences.append(Sentence(match[1], "user", match[2]))
    return True


def _add_to_reply(reply: Reply, line: str) -> bool:
    match = REPLY_LINE.match(line)
    if match is None:
        return False
    if match[1] == "b":
        reply.before = match[2]
        return not reply.sentences
    reply.sentences.append(Sentence(match[1], "user", match[2]))
    return True


def _add_to_store(store: SmallStore, line: str) -> bool:
    if question := STORE_QUESTION.match(line):
        lines = [int(number) - 1 for number in question[2].split(",") if number.strip()]
        store.questions.append(StoreQuestion(question[1], lines))
        return all(0 <= number < len(store.lines) for number in lines)
    if match := STORE_LINE.match(line):
        store.lines.append(match[2])
        return int(match[1]) == len(store.lines)
    return False
