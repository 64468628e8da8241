"""Archives and questions from the four openly licensed sets; README.md names them, their licences and their folders."""

import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import Stemmer

from collection import Collection
from formats import Turn
from questions import STOP_WORDS, in_third_person, questions_about

FOLDERS = ["Synthetic-Persona-Chat", "QMSum", "dstc8-schema-guided-dialogue", "nqg"]

NAMES = (
    "Anna Ben Clara David Emma Frank Grace Henry Isabel Jack Kate Liam Mia Noah Olivia Peter Rachel Sam Tina Umar Vera "
    "Will Yusuf Zoe Alice Daniel Elena Felix Gina Hugo Ivy Jonas Karen Leo Maria Nathan Oscar Paula Ravi Sofia Tom "
    "Victor Wendy Priya Ahmed Chen Akira Fatima Diego Lena Marco Nina Omar Petra Stefan Laura Kevin Julia Megan Ryan "
    "Heather Aaron Monica Derek Luke Molly Erin Carl Martin Helen Susan George Linda Simon Tara Eric Amy Jason Patrick "
    "Beth Alex Robin Jamie Taylor Jordan Casey Morgan"
).split()

PERSONA_CHATS_IN_AN_ARCHIVE = 6
SERVICE_FILES = 36
SERVICE_DIALOGUES_IN_AN_ARCHIVE = 8
PASSAGE_QUESTIONS_IN_AN_ARCHIVE = 150
MOST_TURNS_OF_A_SPAN = 60

SERVICE_QUESTIONS = [
    "What {slot} did {name} choose for the {service}?",
    "Which {slot} did {name} want for the {service}?",
    "What was the {slot} of the {service}?",
    "{name}'s {service}: what {slot}?",
    "What {slot} did {name} ask for?",
    "Do you remember the {slot} {name} gave for the {service}?",
]
OWN_SERVICE_QUESTIONS = [
    "What {slot} did I choose for the {service}?",
    "Which {slot} did I want?",
    "What was the {slot} of my {service}?",
    "What {slot} did I mention for the {service}?",
]
SERVICE_WORDS = {
    "ridesharing": "ride",
    "rentalcar": "rental car",
    "buse": "bus trip",
    "media": "movie night",
    "home": "apartment",
    "service": "appointment",
    "calendar": "event",
    "travel": "trip",
}

STEMMER = Stemmer.Stemmer("english")
PERSONA_TURN = re.compile(r"\s*\**User ([12])\**:\s*(.+)")
FIRST_PERSON = re.compile(r"\b(I|I'm|my|My|me)\b")


def add_open_sets(collection: Collection, folder: Path, random: Random) -> None:
    missing = [name for name in FOLDERS if not (folder / name).is_dir()]
    if missing:
        raise SystemExit(f"`{folder}` lacks `{'`, `'.join(missing)}`; README.md says where the sets come from")
    add_persona_chats(collection, folder / FOLDERS[0], random)
    add_meetings(collection, folder / FOLDERS[1])
    add_service_dialogues(collection, folder / FOLDERS[2], random)
    add_passages(collection, folder / FOLDERS[3])


def add_persona_chats(collection: Collection, folder: Path, random: Random) -> None:
    """Synthetic-Persona-Chat: six chats make an archive; a fact of a persona is asked for where it is said."""
    rows: list[list[str]] = []
    for part in ("valid", "test"):
        with open(folder / f"data/Synthetic-Persona-Chat_{part}.csv", encoding="utf-8", newline="") as file:
            rows += list(csv.reader(file))[1:]
    random.shuffle(rows)
    for start in range(0, len(rows), PERSONA_CHATS_IN_AN_ARCHIVE):
        names = random.sample(NAMES, 2)
        chats = [(row, _persona_turns(row[2], names)) for row in rows[start : start + PERSONA_CHATS_IN_AN_ARCHIVE]]
        chats = [(row, turns) for row, turns in chats if len(turns) > 3]
        starts = collection.add_archive([turns for _, turns in chats]) if chats else []
        for (row, turns), first in zip(chats, starts):
            for persona, name in zip(row[:2], names):
                _ask_for_persona(collection, persona, name, turns, first, random)


def _persona_turns(chat: str, names: list[str]) -> list[Turn]:
    matches = [PERSONA_TURN.match(line) for line in chat.split("\n")]
    return [Turn(names[int(match[1]) - 1], match[2].strip()) for match in matches if match]


def _ask_for_persona(
    collection: Collection, persona: str, name: str, turns: list[Turn], first: int, random: Random
) -> None:
    facts = [fact.strip() for fact in persona.split("\n") if len(fact) > 5]
    own = [place for place, turn in enumerate(turns) if turn.speaker == name]
    if not own:
        return
    for fact, match in zip(facts, best_matches(facts, [turns[place].text for place in own], 0.45)):
        if match is None:
            continue
        place = own[match]
        text = turns[place].text
        if text.rstrip().endswith("?") and not FIRST_PERSON.search(text):
            continue
        questions = questions_about(fact, name, random)
        for question in random.sample(questions, min(2, len(questions))):
            collection.ask(question, [first + place], "persona_chat")
        if random.random() < 0.5:
            collection.ask(in_third_person(fact, name, random), [first + place], "persona_chat")


def add_meetings(collection: Collection, folder: Path) -> None:
    """QMSum: a query, and each sentence of its answer, ask for the turns of the span that share most words."""
    files = [file for part in ("train", "val", "test") for file in sorted((folder / "data/ALL" / part).glob("*.json"))]
    for file in files:
        meeting = json.loads(file.read_text(encoding="utf-8"))
        turns = [Turn(turn["speaker"], _spoken(turn["content"])) for turn in meeting["meeting_transcripts"]]
        [first] = collection.add_archive([turns])
        for query in meeting["specific_query_list"]:
            spans = [(int(start), int(end)) for start, end in query["relevant_text_span"]]
            places = [place for start, end in spans for place in range(start, min(end + 1, len(turns)))]
            if 0 < len(places) <= MOST_TURNS_OF_A_SPAN:
                _ask_for_meeting(collection, query, turns, places, first)


def _ask_for_meeting(collection: Collection, query: dict, turns: list[Turn], places: list[int], first: int) -> None:
    candidates = [f"{turns[place].speaker} {turns[place].text}" for place in places]
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+", query["answer"]) if len(sentence) > 25]
    matches = best_matches([f"{query['query']} {sentence}" for sentence in sentences], candidates, 0.15)
    found = [first + places[match] for match in matches if match is not None]
    collection.ask(query["query"], found, "qmsum")
    for sentence, match in zip(sentences, best_matches(sentences, candidates, 0.4)):
        if match is not None:
            collection.ask(sentence, [first + places[match]], "qmsum")


def add_service_dialogues(collection: Collection, folder: Path, random: Random) -> None:
    """Schema-Guided Dialogue: eight dialogues make an archive; a slot is asked for where its value was given."""
    files = [file for part in ("dev", "train") for file in sorted((folder / part).glob("dialogues_*.json"))]
    random.shuffle(files)
    for file in files[:SERVICE_FILES]:
        dialogues = json.loads(file.read_text(encoding="utf-8"))
        random.shuffle(dialogues)
        for start in range(0, len(dialogues), SERVICE_DIALOGUES_IN_AN_ARCHIVE):
            _add_service_archive(collection, dialogues[start : start + SERVICE_DIALOGUES_IN_AN_ARCHIVE], random)


def _add_service_archive(collection: Collection, dialogues: list[dict], random: Random) -> None:
    own_words = random.random() < 0.6
    names = ["user", "assistant"] if own_words else random.sample(NAMES, 2)
    templates = OWN_SERVICE_QUESTIONS if own_words else SERVICE_QUESTIONS
    sessions = [
        [Turn(names[0 if turn["speaker"] == "USER" else 1], turn["utterance"]) for turn in dialogue["turns"]]
        for dialogue in dialogues
    ]
    for dialogue, first in zip(dialogues, collection.add_archive(sessions)):
        given: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, service, slot in _given_slots(dialogue):
            given[service, slot].append(first + place)
        slots = list(given.items())
        random.shuffle(slots)
        for (service, slot), places in slots[:2]:
            word = re.sub(r"_\d+", "", service).lower().rstrip("s")
            template = random.choice(templates)
            question = template.format(
                slot=slot.replace("_", " "), name=names[0], service=SERVICE_WORDS.get(word, word)
            )
            collection.ask(question, places, "schema_guided")


def _given_slots(dialogue: dict) -> Iterator[tuple[int, str, str]]:
    """The place, service and slot of each value that the user gives."""
    for place, turn in enumerate(dialogue["turns"]):
        for frame in turn["frames"] if turn["speaker"] == "USER" else []:
            for action in frame["actions"]:
                is_given = action["act"] == "INFORM" and action["slot"] not in ("", "intent") and action["values"]
                if is_given and action["values"][0].lower() not in ("true", "false", "dontcare"):
                    yield place, frame["service"], action["slot"]


def add_passages(collection: Collection, folder: Path) -> None:
    """SQuAD by sentences: the sentences of 150 neighbouring questions make an archive."""
    for part in ("dev", "test"):
        sentences = (folder / f"data/processed/src-{part}.txt").read_text(encoding="utf-8").splitlines()
        questions = (folder / f"data/processed/tgt-{part}.txt").read_text(encoding="utf-8").splitlines()
        pairs = list(zip(sentences, questions))
        for start in range(0, len(pairs), PASSAGE_QUESTIONS_IN_AN_ARCHIVE):
            group = pairs[start : start + PASSAGE_QUESTIONS_IN_AN_ARCHIVE]
            distinct = list(dict.fromkeys(sentence for sentence, _ in group))
            starts = collection.add_archive([[Turn("", _joined(sentence))] for sentence in distinct])
            place_of = dict(zip(distinct, starts))
            for sentence, question in group:
                collection.ask(_joined(question), [place_of[sentence]], "squad")


def best_matches(targets: list[str], candidates: list[str], least: float) -> list[int | None]:
    """For each target the candidate that shares most of its rare words, if that share is at least `least`."""
    word_sets = [_stems(candidate) for candidate in candidates]
    frequency = Counter(word for words in word_sets for word in words)

    def rarity(word: str) -> float:
        return math.log(1 + (len(candidates) + 1) / (frequency[word] + 0.5))

    matches: list[int | None] = []
    for target in targets:
        wanted = _stems(target)
        if not wanted or not candidates:
            matches.append(None)
            continue
        total = sum(map(rarity, wanted))
        shares = [sum(map(rarity, wanted & words)) / total - 0.002 * len(words) for words in word_sets]
        best = max(range(len(shares)), key=shares.__getitem__)
        matches.append(best if shares[best] >= least else None)
    return matches


def _stems(text: str) -> set[str]:
    return {STEMMER.stemWord(word) for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS}


def _spoken(text: str) -> str:
    """A transcribed turn without its marks (`{vocalsound}`)."""
    return re.sub(r"\s+", " ", re.sub(r"\{\w+\}", "", _joined(text))).strip()


def _joined(text: str) -> str:
    """A text that was cut into words, as one would write it."""
    text = re.sub(r" (['’](?:s|re|ve|ll|d|m)|n['’]t)\b", r"\1", text)
    text = re.sub(r"\b(gon|wan|got) (na|ta)\b", r"\1\2", text)
    return re.sub(r" ([,.!?;:])", r"\1", text).replace("``", '"').replace("''", '"')
