import unittest

import numpy as np
import torch

from archives import answer_table, first_questions, hardest
from encoder import Encoder, averaged, best_tokens, mixed, pooled
from evaluate import decisions
from gloss import CLS, SEP
from mean import mixed_runs
from network import WIDTH, Body
from prefetch import prefetch
from reader import HEADS, Reader, answers_loss, sentence_loss
from reader_input import segment_batch
from rows import Batch, Rows

CPU = torch.device("cpu")


def small_rows() -> Rows:
    pieces, lengths = np.array([11, 12, 13, 21, 31, 32]), np.array([3, 1, 2])
    return Rows(pieces, lengths, CPU, np.array([-1, 0, -1]))


class RowsTest(unittest.TestCase):
    def test_a_row_is_packed_with_the_end_of_the_row_before(self) -> None:
        batch = small_rows().pack(np.array([1, 2]), longest=2, context=2)
        self.assertEqual(batch.ids.tolist(), [[CLS, 12, 13, SEP, 21, SEP, 0, 0], [CLS, 31, 32, SEP, 0, 0, 0, 0]])
        self.assertEqual(batch.mask.sum(1).tolist(), [6, 4])
        self.assertEqual(batch.kept.int().tolist(), [[1, 0, 0, 0, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]])

    def test_without_context_only_the_row_is_packed(self) -> None:
        batch = small_rows().pack(np.array([0]), longest=2)
        self.assertEqual(batch.ids.tolist(), [[CLS, 11, 12, SEP, 0, 0, 0, 0]])
        self.assertTrue(torch.equal(batch.mask, batch.kept))
        self.assertEqual(small_rows().packed_lengths(np.array([0, 1]), 2, 2).tolist(), [2, 3])

    def test_segments(self) -> None:
        batch = segment_batch([np.array([5, 6]), np.array([], int)], [np.array([7]), np.array([8, 9])])
        self.assertEqual(batch.ids.tolist(), [[CLS, 5, 6, SEP, 7, SEP, 0, 0], [CLS, 8, 9, SEP, 0, 0, 0, 0]])
        self.assertEqual(batch.segments.tolist(), [[0, 0, 0, 0, 1, 1, 0, 0], [0] * 8])


class ArchivesTest(unittest.TestCase):
    def test_hard_negatives_leave_answers_and_their_like_out(self) -> None:
        scores = torch.tensor([[0.9, 0.89, 0.5, 0.7]])
        is_answer = torch.tensor([[True, False, False, False]])
        self.assertEqual(hardest(scores, is_answer).tolist(), [[3, 2, -1, -1]])

    def test_answers_as_a_table(self) -> None:
        table = answer_table(np.array([4, 7, 9]), np.array([2, 1], np.uint16))
        self.assertEqual(table.tolist(), [[4, 7, -1, -1, -1, -1], [9, -1, -1, -1, -1, -1]])

    def test_a_limit_keeps_whole_archives(self) -> None:
        stored = {
            "turn_pieces": np.arange(6),
            "turn_lengths": np.array([2, 1, 3]),
            "turn_before": np.array([-1, -1, -1]),
            "archive_starts": np.array([0, 2, 3]),
            "question_pieces": np.arange(3),
            "question_lengths": np.array([1, 2]),
            "question_archives": np.array([0, 1]),
            "question_sources": np.array([0, 0]),
            "answers": np.array([0, 1, 2]),
            "answer_counts": np.array([2, 1]),
        }
        limited = first_questions(stored, 1)
        self.assertEqual(
            {name: len(array) for name, array in limited.items()},
            {
                "turn_pieces": 3,
                "turn_lengths": 2,
                "turn_before": 2,
                "archive_starts": 2,
                "question_pieces": 1,
                "question_lengths": 1,
                "question_archives": 1,
                "question_sources": 1,
                "answers": 2,
                "answer_counts": 1,
            },
        )


class NetworksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        torch.manual_seed(1)
        cls.base = {name: tensor.numpy() for name, tensor in Body().state_dict().items()}
        ids = torch.tensor([[CLS, 5, 1010, SEP], [CLS, 7, SEP, 0]])
        cls.batch = Batch(ids, ids != 0, ids != 0)

    def test_the_encoder_gives_unit_vectors_that_padding_does_not_change(self) -> None:
        encoder = Encoder(self.base, [1010]).eval()
        with torch.no_grad():
            vectors = encoder.vectors(self.batch)
            alone = encoder.vectors(Batch(*(tensor[1:, :3] for tensor in vars(self.batch).values())))
            hidden = encoder.body(self.batch.ids, self.batch.mask)
            _, counted = encoder.turn_tokens(hidden, self.batch)
            tokens, weights = encoder.question_tokens(hidden, self.batch)
        self.assertEqual(vectors.shape, (2, WIDTH))
        self.assertTrue(torch.allclose(vectors.norm(dim=1), torch.ones(2)))
        self.assertTrue(torch.allclose(vectors[1:], alone, atol=1e-5))
        self.assertEqual(counted.int().tolist(), [[1, 1, 0, 0], [1, 1, 0, 0]])
        self.assertTrue(torch.allclose(weights.sum(1), torch.ones(2)))
        scores = best_tokens(tokens, weights, tokens, counted)
        self.assertEqual(scores.shape, (2, 2))

    def test_the_mean_leaves_the_context_out(self) -> None:
        hidden = torch.tensor([[[1.0, 0.0], [0.0, 9.0], [1.0, 0.0]]])
        kept = torch.tensor([[True, False, True]])
        self.assertEqual(pooled(hidden, Batch(kept, kept, kept)).tolist(), [[1.0, 0.0]])

    def test_runs_are_averaged_and_mixed_with_the_base(self) -> None:
        states = [{"body.norm.bias": torch.full((2,), value), "scale": torch.tensor(value)} for value in (1.0, 3.0)]
        state = mixed(averaged(states), {"norm.bias": np.full(2, 12.0, np.float32)})
        self.assertTrue(torch.allclose(state["body.norm.bias"], torch.full((2,), 3.0)))
        self.assertEqual(state["scale"].item(), 2.0)

    def test_the_reader_has_seven_heads(self) -> None:
        reader = Reader(self.base).eval()
        with torch.no_grad():
            inputs = self.batch.ids, self.batch.mask, torch.zeros_like(self.batch.ids)
            logits = reader(*inputs) | reader.answers(*inputs)
        self.assertEqual(list(logits), ["worth", "kind", "voice", "case", "alone", "relation", "answers"])
        self.assertEqual([tuple(tensor.shape) for tensor in logits.values()], [(2, size) for size in HEADS.values()])

    def test_answers_alone_are_trained(self) -> None:
        reader = Reader(self.base).eval()
        reader.train_answers_only()
        inputs = self.batch.ids, self.batch.mask, torch.zeros_like(self.batch.ids)
        with torch.no_grad():
            before = reader(*inputs)
        rates = torch.optim.SGD([one for one in reader.parameters() if one.requires_grad], lr=0.1)
        for _ in range(2):
            first = reader.answers(*inputs)["answers"]
            first.sum().backward()
            rates.step()
        with torch.no_grad():
            after, judged = reader(*inputs), reader.answers(*inputs)["answers"]
        self.assertTrue(all(torch.equal(before[name], after[name]) for name in before))
        self.assertFalse(torch.equal(first, judged))
        self.assertTrue(reader.adapters[0]["query"].up.weight.any())

    def test_runs_are_mixed_with_their_start(self) -> None:
        start = {"a": np.zeros(2)}
        runs = [{"a": np.full(2, 1.0), "new": np.ones(1)}, {"a": np.full(2, 3.0), "new": np.full(1, 3.0)}]
        found = mixed_runs(start, runs, 0.5)
        self.assertEqual([found["a"].tolist(), found["new"].tolist()], [[1.0, 1.0], [2.0]])

    def test_losses_fall_for_what_is_right(self) -> None:
        right, wrong = torch.tensor([[0.0, 4.0]] + [[4.0, 0.0]] * 3), torch.tensor([[4.0, 0.0]] + [[0.0, 4.0]] * 3)
        self.assertLess(answers_loss(right), answers_loss(wrong))
        logits = {head: torch.zeros(1, classes) for head, classes in HEADS.items()}
        labels = {
            "worth": torch.tensor([1]),
            **{head: torch.tensor([-1]) for head in ("kind", "voice", "case", "alone")},
        }
        self.assertAlmostEqual(sentence_loss(logits, labels).item(), float(np.log(2)), places=5)


class DecisionsTest(unittest.TestCase):
    def test_right_wrong_and_missed(self) -> None:
        change, relation = np.array([0.9, 0.1, 0.6, 0.2, 0.9]), np.array([2, 0, 0, 3, 0])
        lines = {0: [0, 1], 1: [2, 3], 2: [4]}
        kept = {0: True, 1: True, 2: False}
        self.assertEqual(decisions(lines, kept, change, relation, 0.5), (1, 1, 1))
        self.assertEqual(decisions(lines, kept, change, relation, 0.8), (1, 0, 1))


class PrefetchTest(unittest.TestCase):
    def test_items_keep_their_order_and_failures_arrive(self) -> None:
        self.assertEqual(list(prefetch(range(50))), list(range(50)))
        with self.assertRaises(ZeroDivisionError):
            list(prefetch(1 // number for number in (1, 0)))


if __name__ == "__main__":
    unittest.main()
