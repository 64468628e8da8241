import unittest
from pathlib import Path

from gloss import CRATES, Pieces, read_function_words

PINNED: Path = CRATES / "strata-models/tests/data/gloss.tsv"


class GlossTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.pieces = Pieces()

    def test_the_pieces_are_those_that_pin_the_rust_code(self) -> None:
        lines = PINNED.read_text(encoding="utf-8").splitlines()
        self.assertGreater(len(lines), 100)
        for line in lines:
            text, expected = line.split("\t")
            self.assertEqual(self.pieces.of(text), [int(piece) for piece in expected.split()], text)

    def test_english_goes_through_the_vocabulary(self) -> None:
        self.assertEqual(self.pieces.of("The cat, again!"), [1996, 4937, 1010, 2153, 999])
        self.assertEqual(self.pieces.first("the cat again", 2), [1996, 4937])
        self.assertEqual(self.pieces.last("the cat again", 2), [4937, 2153])

    def test_every_mark_of_punctuation_is_a_piece(self) -> None:
        self.assertEqual(len(set(self.pieces.punctuation())), 32)
        self.assertNotIn(None, self.pieces.punctuation())

    def test_a_later_gloss_of_a_function_word_replaces_the_earlier(self) -> None:
        source = 'const FUNCTION_WORDS: &str = "甲=one_thing \\\n    乙= 甲=two";'
        self.assertEqual(read_function_words(source), {"甲": "two", "乙": ""})


if __name__ == "__main__":
    unittest.main()
