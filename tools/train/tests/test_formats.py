import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

from formats import (
    Question,
    Sentence,
    StoreQuestion,
    StreamLine,
    Turn,
    held_out,
    read_cases,
    read_dialogues,
    read_messages,
    read_replies,
    read_stores,
    read_streams,
)

DATA = Path(__file__).resolve().parents[1] / "data"


def read(reader: Callable[[Path], list], text: str) -> list:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a_00.txt").write_text(text, encoding="utf-8")
        return reader(Path(folder))


class FormatsTest(unittest.TestCase):
    def test_a_dialogue_has_sessions_and_questions(self) -> None:
        text = "# d1 | Ines | Tomas\n@ 2024-01-02\n1 A: Hi.\n2 B: I sold the boat.\n@ 2024-02-02\n3 A: And?\n"
        text += "? What did Tomas sell? | 2\n! Ines wants to sail. | 2, 3, 9\n"
        [dialogue] = read(read_dialogues, text)
        sessions = [[Turn("Ines", "Hi."), Turn("Tomas", "I sold the boat.")], [Turn("Ines", "And?")]]
        self.assertEqual(dialogue.sessions, sessions)
        self.assertEqual(dialogue.questions[0], Question("What did Tomas sell?", [1], False))
        self.assertEqual(dialogue.questions[1], Question("Ines wants to sail.", [1, 2], True))

    def test_a_stream_line_has_a_mark_and_a_kind_or_a_target(self) -> None:
        [stream] = read(read_streams, "# s1 | en\n+f I live in Oslo.\n~1 Now in Bergen.\n\n. Nice day.\n? Is it?\n")
        expected = [("+", "f", None), ("~", None, 0), (".", None, None), ("?", None, None)]
        self.assertEqual([(line.mark, line.kind, line.target) for line in stream.lines], expected)
        self.assertEqual(stream.lines[1], StreamLine("~", None, 0, "Now in Bergen."))

    def test_sentences_have_labels(self) -> None:
        [case] = read(read_cases, "# c1 | en\n? U: Why?\no A: The cable was loose.\n")
        self.assertEqual(case.sentences[1], Sentence("o", "assistant", "The cable was loose."))
        [message] = read(read_messages, "# m1 | zh\nr 帮我看看\no 我住三楼\n")
        self.assertEqual((message.language, message.sentences[1].label), ("zh", "o"))

    def test_a_small_store_has_lines_and_questions_with_or_without_an_answer(self) -> None:
        [store] = read(read_stores, "# p1 | en\n1 I keep newts.\n2 Two of them.\n? any pets | 1, 2\n? their names? |\n")
        self.assertEqual(store.lines, ["I keep newts.", "Two of them."])
        self.assertEqual(store.questions, [StoreQuestion("any pets", [0, 1]), StoreQuestion("their names?", [])])

    def test_bad_lines_are_named(self) -> None:
        for reader, text in [
            (read_streams, "# s1 | en\n+q I am no kind.\n"),
            (read_streams, "# s1 | en\n~1 I replace nothing.\n"),
            (read_streams, "+f I have no heading.\n"),
            (read_cases, "# c1 | en\nf X: I am nobody.\n"),
            (read_messages, "# m1 | en\nz What is that?\n"),
            (read_dialogues, "# d1 | Ines | Tomas\n1 C: Who am I?\n"),
            (read_stores, "# p1 | en\n2 I am not the first.\n"),
            (read_stores, "# p1 | en\n1 I keep newts.\n? any pets | 2\n"),
        ]:
            with self.assertRaisesRegex(ValueError, r"a_00\.txt:\d+: "):
                read(reader, text)
        with self.assertRaisesRegex(ValueError, "two speakers"):
            read(read_dialogues, "# d1 | Ines\n")

    def test_the_data_of_the_repository_reads(self) -> None:
        counts = [
            len(reader(DATA / name))
            for reader, name in [
                (read_dialogues, "dialogues"),
                (read_streams, "streams"),
                (read_cases, "cases"),
                (read_messages, "messages"),
                (read_replies, "standing"),
                (read_stores, "stores"),
            ]
        ]
        self.assertEqual(counts, [320, 2996, 503, 2306, 840, 170])

    def test_one_in_ten_is_held_out_and_ids_do_not_repeat(self) -> None:
        ids = [stream.id for stream in read_streams(DATA / "streams")]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertAlmostEqual(sum(map(held_out, ids)) / len(ids), 0.1, delta=0.02)
        self.assertEqual([name for name in ids if held_out(name)][:3], ["t10-009", "t10-014", "t10-044"])


if __name__ == "__main__":
    unittest.main()
