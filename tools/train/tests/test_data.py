import csv
import json
import tempfile
import unittest
from pathlib import Path
from random import Random

from collection import Collection
from encoder_data import add_dialogue, add_stream
from formats import Case, Dialogue, Message, Question, Sentence, SmallStore, StoreQuestion, Stream, StreamLine, Turn, held_out
from gloss import SEP, Pieces
from reader_data import (
    Pair,
    asked_lines,
    case_sentences,
    message_sentences,
    new_with_context,
    reworded,
    sentence_context,
    stream_pairs,
    stream_sentences,
)

LINES = [
    StreamLine("+", "f", None, "I live in Oslo."),
    StreamLine("+", "s", None, "Choir is on Mondays."),
    StreamLine("~", None, 0, "I live in Bergen now."),
    StreamLine(".", None, None, "Rain again."),
    StreamLine("=", None, 1, "Mondays I sing."),
    StreamLine("-", None, 1, "I have left the choir."),
    StreamLine("?", None, None, "Where do I live?"),
]


def a_held_out_id(wanted: bool) -> str:
    return next(name for name in map(str, range(100)) if held_out(name) == wanted)


class EncoderDataTest(unittest.TestCase):
    def test_turns_know_the_turn_before_in_their_session(self) -> None:
        collection = Collection()
        collection.add_archive([[Turn("user", "zero")]])
        sessions = [[Turn("Ines", "Hi."), Turn("Tomas", "I sold the boat.")], [Turn("Ines", "And?")]]
        questions = [Question("What was sold?", [1], False), Question("Ines wants to sail.", [1, 0, 1], True)]
        add_dialogue(collection, Dialogue("d", ("Ines", "Tomas"), sessions, questions))
        self.assertEqual(collection.before, [-1, -1, 1, -1])
        self.assertEqual([asked.turns for asked in collection.asked], [[2], [1, 2]])
        self.assertEqual([asked.source for asked in collection.asked], ["question", "situation"])
        arrays = collection.arrays(Pieces())
        self.assertEqual(arrays["archive_starts"].tolist(), [0, 1, 4])
        self.assertEqual(arrays["answers"].tolist(), [2, 1, 2])
        self.assertEqual(arrays["turn_lengths"].sum(), len(arrays["turn_pieces"]))

    def test_a_change_asks_for_the_line_it_changes(self) -> None:
        collection = Collection()
        add_stream(collection, Stream("s", "en", LINES))
        add_stream(collection, Stream("short", "en", LINES[:5]))
        self.assertEqual([asked.turns for asked in collection.asked], [[0], [1], [1]])
        self.assertEqual(collection.before, [-1] * len(LINES))


class ReaderDataTest(unittest.TestCase):
    def test_stream_sentences_have_the_labels_of_their_marks(self) -> None:
        sentences = list(stream_sentences(Stream("s", "en", LINES)))
        self.assertEqual([sentence.worth for sentence in sentences], [1, 1, 1, 0, -1, 1, 0])
        self.assertEqual([sentence.kind for sentence in sentences], [0, 2, -1, -1, -1, -1, -1])
        self.assertEqual([sentence.voice for sentence in sentences], [0, 0, 0, -1, -1, 0, 5])
        self.assertEqual((sentences[1].before, sentences[1].text), ("I live in Oslo.", "user: Choir is on Mondays."))

    def test_a_line_is_compared_with_what_is_current(self) -> None:
        for is_held_out in (True, False):
            stream = Stream(a_held_out_id(is_held_out), "en", LINES)
            pairs = list(stream_pairs(stream, 10, Random(1)))
            found = sorted((pair.sentence - 10, pair.old, pair.relation) for pair in pairs)
            oslo, choir, bergen = LINES[0].text, LINES[1].text, LINES[2].text
            expected = [(1, oslo, 0), (2, oslo, 2), (2, choir, 0), (3, choir, 0), (3, bergen, 0), (4, choir, 1)]
            expected += [(4, bergen, 0), (5, choir, 3), (5, bergen, 0), (6, bergen, 0)]
            self.assertEqual(found, sorted(expected))

    def test_training_pairs_have_at_most_eight_negatives_for_a_line(self) -> None:
        lines = [StreamLine("+", "f", None, f"Fact number {number}.") for number in range(20)]
        for is_held_out, most in ((True, 19), (False, 8)):
            pairs = list(stream_pairs(Stream(a_held_out_id(is_held_out), "en", lines), 0, Random(1)))
            self.assertEqual(sum(pair.sentence == 19 for pair in pairs), most)

    def test_held_out_and_chinese_pairs_are_not_reworded(self) -> None:
        pairs = [Pair("I own a kiln.", "It broke.", "", 3, 0, False)] * 400
        self.assertAlmostEqual(len(list(reworded(pairs, Random(1)))), 140, delta=40)
        self.assertTrue(all(" owns a kiln." in pair.old for pair in reworded(pairs, Random(1))))
        others = [Pair("I own a kiln.", "It broke.", "", 3, 0, True), Pair("我有猫", "送人了", "", 3, 0, False)] * 200
        self.assertEqual(list(reworded(others, Random(1))), [])

    def test_a_question_is_asked_of_its_answers_and_of_others(self) -> None:
        lines = ["The user keeps newts.", "[2024-03-02] assistant: Feed them worms.", *(f"Newt {n} is shy." for n in range(9))]
        questions = [StoreQuestion("what do newts eat", [1]), StoreQuestion("are the newts old", [])]
        for wanted, count in ((False, 1 + 6 + 6), (True, 2 * len(lines))):
            store = SmallStore(a_held_out_id(wanted), "en", lines, questions)
            asked = list(asked_lines(store, Random(2)))
            self.assertEqual(len(asked), count)
            self.assertEqual([line.line for line in asked if line.answers], ["assistant: Feed them worms."])
            self.assertTrue(all(line.line.startswith(("user: ", "assistant: ", "The user")) for line in asked))
            self.assertTrue(all(not line.before for line in asked if line.line.startswith("The user")))

    def test_context_of_cases_and_messages(self) -> None:
        pieces = Pieces()
        case = Case("c", "en", [Sentence("?", "user", "Why?"), Sentence("o", "assistant", "A loose cable.")])
        first, second = case_sentences(case)
        self.assertEqual((first.worth, second.worth, second.case), (0, -1, 5))
        self.assertEqual(sentence_context(second, pieces), pieces.of("user: Why?"))
        message = Message("m", "en", [Sentence("o", "user", word) for word in ("one", "two", "three", "four")])
        second = list(message_sentences(message))[1]
        self.assertEqual(sentence_context(second, pieces), pieces.of("one") + [SEP] + pieces.of("three four"))
        pair = Pair("old", "new", "before", 0, 0, False)
        self.assertEqual(new_with_context(pair, pieces), pieces.of("before") + [SEP] + pieces.of("new"))


class OpenSetsTest(unittest.TestCase):
    def test_each_set_gives_archives_and_questions(self) -> None:
        from open_sets import add_open_sets

        collection = Collection()
        with tempfile.TemporaryDirectory() as folder:
            write_small_sets(Path(folder))
            add_open_sets(collection, Path(folder), Random(1))
        asked = {asked.source: asked for asked in collection.asked}
        self.assertEqual(set(asked), {"persona_chat", "qmsum", "schema_guided", "squad"})
        answered = {source: collection.turns[question.turns[0]].text for source, question in asked.items()}
        self.assertEqual(answered["persona_chat"], "I restore old clocks in my garage.")
        self.assertEqual(answered["qmsum"], "The budget for the remote control is twelve euros.")
        self.assertEqual(answered["schema_guided"], "In Fresno, please.")
        self.assertEqual(answered["squad"], "the abbey's roof burned in 1206.")
        self.assertEqual(asked["squad"].text, "when did the roof burn?")

    def test_a_missing_set_is_named(self) -> None:
        from open_sets import add_open_sets

        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(SystemExit, "QMSum"):
            add_open_sets(Collection(), Path(folder), Random(1))


def write_small_sets(folder: Path) -> None:
    for name in ("Synthetic-Persona-Chat/data", "QMSum/data/ALL/val", "dstc8-schema-guided-dialogue/dev"):
        (folder / name).mkdir(parents=True)
    (folder / "nqg/data/processed").mkdir(parents=True)
    chat = (
        "User 1: Hello there.\nUser 2: Hi, what do you do?\nUser 1: I restore old clocks in my garage.\nUser 2: Nice."
    )
    for part in ("valid", "test"):
        with open(folder / f"Synthetic-Persona-Chat/data/Synthetic-Persona-Chat_{part}.csv", "w", newline="") as file:
            rows = [["user 1 personas", "user 2 personas", "chat"], ["I restore old clocks.", "I like tea.", chat]]
            csv.writer(file).writerows(rows)
    meeting = {
        "meeting_transcripts": [
            {"speaker": "Lead", "content": "Good morning {vocalsound} ."},
            {"speaker": "Design", "content": "The budget for the remote control is twelve euros ."},
        ],
        "specific_query_list": [
            {
                "query": "What is the budget?",
                "answer": "The budget for the remote control is twelve euros.",
                "relevant_text_span": [["0", "1"]],
            }
        ],
    }
    (folder / "QMSum/data/ALL/val/a.json").write_text(json.dumps(meeting))
    action = {"act": "INFORM", "slot": "city", "values": ["Fresno"]}
    turns = [
        {"speaker": "USER", "utterance": "I need a bus.", "frames": []},
        {"speaker": "SYSTEM", "utterance": "Where?", "frames": []},
        {"speaker": "USER", "utterance": "In Fresno, please.", "frames": [{"service": "Buses_1", "actions": [action]}]},
    ]
    target = folder / "dstc8-schema-guided-dialogue/dev/dialogues_001.json"
    target.write_text(json.dumps([{"turns": turns}]))
    for part in ("dev", "test"):
        (folder / f"nqg/data/processed/src-{part}.txt").write_text("the abbey 's roof burned in 1206 .\n")
        (folder / f"nqg/data/processed/tgt-{part}.txt").write_text("when did the roof burn ?\n")


if __name__ == "__main__":
    unittest.main()
