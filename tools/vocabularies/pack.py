"""Packs a tiktoken vocabulary into the table that `strata-models` reads.

    python3 pack.py cl100k_base.tiktoken.gz ../../crates/strata-models/data/cl100k.bin

The input has one token a line, as base64, in the order of the ranks. `crates/strata-models/data/README.md` describes the output.
"""

import base64
import gzip
import struct
import sys


def main(source: str, target: str) -> None:
    lines = gzip.open(source).read().splitlines()
    tokens = [base64.b64decode(line.split()[0]) for line in lines if line]
    assert len(set(tokens)) == len(tokens) and all(0 < len(token) < 256 for token in tokens)
    assert all(bytes([byte]) in set(tokens[:256]) for byte in range(256))
    with open(target, "wb") as file:
        file.write(b"STRB" + struct.pack("<II", 1, len(tokens)))
        file.write(bytes(len(token) for token in tokens))
        file.write(b"".join(tokens))


if __name__ == "__main__":
    main(*sys.argv[1:])
