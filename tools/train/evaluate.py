"""Measures an exported reader on the held-out tenth of the data.

Each line of a held-out stream is compared with all lines that are current: a decision is right if the reader finds the
line that the new one replaces or ends, and wrong if it finds another or one where there is none.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import onnxruntime

from formats import CASE_ROLES, KINDS, VOICES
from onnx_graph import INPUTS
from reader_input import SENTENCE_HEADS, ReaderData, SegmentBatch

AT_ONCE = 128
THRESHOLDS = [0.5, 0.8]
LEAST_WORTH = 0.4
CLASSES = {
    "worth": ["no", "yes"],
    "kind": list(KINDS),
    "voice": list(VOICES),
    "case": list(CASE_ROLES),
    "relation": ["nothing", "repeats", "replaces", "ends"],
}
FIRST_CHANGE = CLASSES["relation"].index("replaces")


def main() -> None:
    arguments = parse_arguments()
    data = ReaderData(arguments.data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(arguments.model, options)
    sentences = np.flatnonzero(data.sentence_is_held_out)[: arguments.limit]
    pairs = np.flatnonzero(data.pair_is_held_out)[: arguments.limit]
    pairs = pairs[np.isin(data.pair_sentence[pairs], sentences)]
    logits = run(session, SENTENCE_HEADS, data.sentence_batch, sentences)
    logits |= run(session, ["relation"], data.pair_batch, pairs)
    report_sentences(data, sentences, logits)
    report_relations(data.relation[pairs], logits["relation"])
    report_decisions(data, sentences, pairs, logits)
    lines = np.flatnonzero(data.line_is_held_out)[: arguments.limit]
    if len(lines):
        report_lines(data, lines, run(session, ["answers"], data.line_batch, lines)["answers"])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="model.onnx or model_int8.onnx of export.py")
    parser.add_argument("--data", default="reader_data.npz", help="of reader_data.py (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="of the processor (default: all)")
    parser.add_argument("--limit", type=int, help="measure only this many sentences and pairs, for a trial run")
    return parser.parse_args()


def run(
    session: onnxruntime.InferenceSession,
    heads: list[str],
    batch_of: Callable[[np.ndarray], SegmentBatch],
    numbers: np.ndarray,
) -> dict[str, np.ndarray]:
    """The logits of the heads for all numbers."""
    parts = []
    for start in range(0, len(numbers), AT_ONCE):
        batch = batch_of(numbers[start : start + AT_ONCE])
        inputs = {name: tensor.long().numpy() for name, tensor in zip(INPUTS, batch.tensors())}
        parts.append(session.run(heads, inputs))
    return {head: np.concatenate(outputs) for head, outputs in zip(heads, zip(*parts))}


def report_sentences(data: ReaderData, sentences: np.ndarray, logits: dict[str, np.ndarray]) -> None:
    for head in SENTENCE_HEADS:
        truth, found = data.labels[head][sentences], logits[head].argmax(1)
        is_labelled = truth >= 0
        print(f"{head}: {accuracy(truth, found, is_labelled)}")
        if head == "worth":
            is_chinese = data.sentence_is_chinese[sentences]
            print(f"  English: {accuracy(truth, found, is_labelled & ~is_chinese)}")
            print(f"  Chinese: {accuracy(truth, found, is_labelled & is_chinese)}")
        if head in ("worth", "voice"):
            in_message = is_labelled & data.sentence_is_in_message[sentences]
            print(f"  in messages: {accuracy(truth, found, in_message)}")
            if head == "voice":
                print_classes(head, truth[in_message], found[in_message])


def report_relations(truth: np.ndarray, logits: np.ndarray) -> None:
    found = logits.argmax(1)
    print(f"relation: {accuracy(truth, found, truth >= 0)}")
    print_classes("relation", truth, found)


def report_decisions(data: ReaderData, sentences: np.ndarray, pairs: np.ndarray, logits: dict[str, np.ndarray]) -> None:
    worth = dict(zip(sentences, probabilities(logits["worth"])[:, 1]))
    change = probabilities(logits["relation"])[:, FIRST_CHANGE:].sum(1)
    for language, is_chinese in (("English", False), ("Chinese", True)):
        lines: dict[int, list[int]] = defaultdict(list)
        for place, sentence in enumerate(data.pair_sentence[pairs]):
            if data.sentence_is_chinese[sentence] == is_chinese:
                lines[sentence].append(place)
        for threshold in THRESHOLDS:
            is_kept = {sentence: worth[sentence] >= LEAST_WORTH for sentence in lines}
            right, wrong, missed = decisions(lines, is_kept, change, data.relation[pairs], threshold)
            precision, recall = percent(right, right + wrong), percent(right, right + missed)
            print(f"decisions at {threshold}, {language}: precision {precision}, recall {recall}, lines {len(lines)}")


def decisions(
    lines: dict[int, list[int]],
    is_kept: dict[int, bool],
    change: np.ndarray,
    relation: np.ndarray,
    threshold: float,
) -> tuple[int, int, int]:
    """How many decisions are right, how many are wrong, and how many changes are missed."""
    right = wrong = missed = 0
    for sentence, places in lines.items():
        best = max(places, key=lambda place: change[place])
        decided = bool(is_kept[sentence] and change[best] >= threshold)
        targets = [place for place in places if relation[place] >= FIRST_CHANGE]
        is_right = decided and targets[:1] == [best]
        right += is_right
        wrong += decided and not is_right
        missed += bool(targets) and not is_right
    return right, wrong, missed


def report_lines(data: ReaderData, lines: np.ndarray, logits: np.ndarray) -> None:
    yes = logits[:, 1] - logits[:, 0]
    answers = data.line_answers[lines] == 1
    for language, is_chinese in (("English", False), ("Chinese", True)):
        counted = data.line_is_chinese[lines] == is_chinese
        if (counted & answers).any() and (counted & ~answers).any():
            separated = share_above(yes[counted & answers], yes[counted & ~answers])
            print(f"lines of small stores, {language}: {100 * separated:.1f} % of answers above others of {counted.sum():,}")


def share_above(answers: np.ndarray, others: np.ndarray) -> float:
    """The share of pairs of an answer and another line in which the answer has the greater logit (the area under the ROC curve)."""
    return float((answers[:, None] > others[None, :]).mean())


def accuracy(truth: np.ndarray, found: np.ndarray, counted: np.ndarray) -> str:
    return f"{percent((truth == found)[counted].sum(), counted.sum())} right of {counted.sum():,}"


def print_classes(head: str, truth: np.ndarray, found: np.ndarray) -> None:
    for number, name in enumerate(CLASSES[head]):
        right = ((truth == number) & (found == number)).sum()
        precision, recall = percent(right, (found == number).sum()), percent(right, (truth == number).sum())
        print(f"    {name}: precision {precision}, recall {recall}")


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def probabilities(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


if __name__ == "__main__":
    main()
