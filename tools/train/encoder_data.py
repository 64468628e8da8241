"""Makes the encoder's training data: archives of turns, and questions with the turns that answer them.

Without `--open-sets` the data are those written for Strata alone.
"""

import argparse
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

from collection import Collection
from formats import Dialogue, Stream, Turn, read_dialogues, read_streams
from gloss import Pieces

SEED = 7
SHORTEST_STREAM = 6


def main() -> None:
    arguments = parse_arguments()
    collection = Collection()
    for dialogue in read_dialogues(arguments.data / "dialogues"):
        add_dialogue(collection, dialogue)
    for stream in read_streams(arguments.data / "streams"):
        add_stream(collection, stream)
    if arguments.open_sets is None:
        print("only the data written for Strata: `--open-sets` is not given")
    else:
        from open_sets import add_open_sets  # needs PyStemmer, which the other data do not

        add_open_sets(collection, arguments.open_sets, Random(SEED))
    np.savez_compressed(arguments.out, **collection.arrays(Pieces()))
    counts = dict(Counter(asked.source for asked in collection.asked))
    print(f"{len(collection.turns):,} turns, {len(collection.asked):,} questions {counts} -> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = Path(__file__).resolve().parent / "data"
    parser.add_argument("--data", type=Path, default=folder, help="the folder of the data (default: the one here)")
    parser.add_argument("--open-sets", type=Path, help="a folder with the four openly licensed sets of README.md")
    parser.add_argument("--out", default="encoder_data.npz", help="the file to write (default: %(default)s)")
    return parser.parse_args()


def add_dialogue(collection: Collection, dialogue: Dialogue) -> None:
    starts = collection.add_archive(dialogue.sessions)
    for question in dialogue.questions:
        turns = [starts[0] + turn for turn in question.turns]
        collection.ask(question.text, turns, "situation" if question.is_situation else "question")


def add_stream(collection: Collection, stream: Stream) -> None:
    """A line that replaces, ends or repeats another asks for it. Each line is a session of its own."""
    if len(stream.lines) < SHORTEST_STREAM:
        return
    starts = collection.add_archive([[Turn("user", line.text)] for line in stream.lines])
    for line in stream.lines:
        if line.target is not None:
            collection.ask(line.text, [starts[line.target]], "change")


if __name__ == "__main__":
    main()
