"""Averages the weights of several runs from one start, and mixes the mean with that start.

Runs from the same weights average well: the mean is better than each of them. Mixed with the start, it keeps what the
start knew and the new data do not repeat. A head that the start does not have comes from the runs alone.
"""

import argparse

import numpy as np

from network import read_weights


def main() -> None:
    arguments = parse_arguments()
    start = read_weights(arguments.start)
    runs = [read_weights(path) for path in arguments.runs]
    np.savez(arguments.out, **mixed_runs(start, runs, arguments.share))
    print(f"{arguments.share:.2f} of {len(runs)} runs -> {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="the outputs of reader.py")
    parser.add_argument("--start", required=True, help="the weights that the runs began with")
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the runs' mean; the rest is the start (default: %(default)s)"
    )
    parser.add_argument("--out", default="reader.npz", help="the file to write (default: %(default)s)")
    return parser.parse_args()


def mixed_runs(start: dict[str, np.ndarray], runs: list[dict[str, np.ndarray]], share: float) -> dict[str, np.ndarray]:
    means = {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
    return {name: share * mean + (1 - share) * start[name] if name in start else mean for name, mean in means.items()}


if __name__ == "__main__":
    main()
