import unittest
from random import Random

from questions import in_third_person, present_of, questions_about


class QuestionsTest(unittest.TestCase):
    def test_past_forms(self) -> None:
        for past, present in [
            ("went", "go"),
            ("studied", "study"),
            ("planned", "plan"),
            ("moved", "move"),
            ("visited", "visit"),
            ("worked", "work"),
            ("called", "call"),
            ("need", None),
            ("walk", None),
        ]:
            self.assertEqual(present_of(past), present, past)

    def test_third_person(self) -> None:
        for fact, expected in [
            ("I'm a nurse.", "Lena is a nurse."),
            ("I like me time.", "Lena likes them time."),
            ("I have a boat", "Lena has a boat"),
            ("I'll paint it myself", "Lena will paint it themself"),
        ]:
            self.assertEqual(in_third_person(fact, "Lena", Random(1)), expected)
        reworded = in_third_person("My sister sings.", "Lena", Random(1))
        self.assertIn(reworded, ["Lena's sister sings.", "their sister sings."])

    def test_a_fact_is_asked_for_by_its_verb(self) -> None:
        for fact, expected in [
            ("I live in Graz.", "Where does Lena live?"),
            ("I am 41 years old.", "How old is Lena?"),
            ("I bought a red canoe last week.", "Did Lena buy a red canoe last week?"),
            ("I have three parrots.", "How many parrots does Lena have?"),
            ("My favorite colour is green.", "What is Lena's favorite colour?"),
            ("My brother is a pilot.", "Is Lena's brother a pilot?"),
            ("I work at a mill.", "What does Lena do for work?"),
        ]:
            self.assertIn(expected, questions_about(fact, "Lena", Random(3)), fact)

    def test_nothing_is_asked_about_nothing(self) -> None:
        self.assertEqual(questions_about("", "Lena", Random(3)), [])


if __name__ == "__main__":
    unittest.main()
