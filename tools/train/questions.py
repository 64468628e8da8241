"""Questions in English about a fact that somebody has said in the first person («I work in a bakery»).

Synthetic-Persona-Chat has facts and no questions. The templates below turn each fact into questions that it answers,
and into the fact in the third person. The reader's training uses the third person too.
"""

import re
from random import Random

STOP_WORDS = set(
    "a an the and or but if of to in on at for with from by about as is am are was were be been being do does did done "
    "have has had i you he she it we they me him her us them my your his its our their this that these those what "
    "which who whom when where why how not no so too very just can could will would should may might than then there "
    "here also more most some any all into out up down over again s t d ll m re ve don didn".split()
)
EMPTY_WORDS = STOP_WORDS | set("like love want really get going think know".split())

IRREGULAR_PASTS = dict(
    pair.split("=")
    for pair in (
        "went=go saw=see got=get bought=buy took=take made=make met=meet had=have did=do found=find came=come "
        "told=tell gave=give began=begin started=start left=leave lost=lose won=win ran=run ate=eat drove=drive "
        "flew=fly wrote=write read=read grew=grow taught=teach thought=think felt=feel kept=keep spent=spend "
        "sold=sell broke=break caught=catch heard=hear built=build sent=send fell=fall swam=swim sang=sing "
        "slept=sleep spoke=speak knew=know became=become held=hold stood=stand brought=bring hurt=hurt put=put "
        "cut=cut quit=quit fed=feed hung=hang led=lead paid=pay rode=ride said=say sat=sit wore=wear woke=wake "
        "chose=choose drank=drink forgot=forget hid=hide understood=understand set=set let=let hit=hit"
    ).split()
)

THIRD_PERSON = [
    (r"i'm", "{name} is"),
    (r"i am", "{name} is"),
    (r"i was", "{name} was"),
    (r"i've", "{name} has"),
    (r"i have", "{name} has"),
    (r"i'd", "{name} would"),
    (r"i'll", "{name} will"),
    (r"i don't", "{name} doesn't"),
    (r"i do not", "{name} does not"),
    (r"myself", "themself"),
    (r"my", "{whose}"),
    (r"mine", "{name}'s"),
    (r"me", "them"),
]
VERBS_WITH_S = re.compile(
    r"\bi (like|love|want|live|work|enjoy|hate|need|play|own|know|think|feel|prefer|eat|drive|read|wear|collect|speak|"
    r"come|plan|hope|use|drink|run|listen|make|take|get|travel)\b",
    re.IGNORECASE,
)

SUBJECT_AND_VERB = re.compile(
    r"i (?:really |also |always |often |usually |sometimes |currently |just |still |recently |only |never )*(\w+) (.+)"
)
FAVOURITE = re.compile(r"my favou?rite (.+?) (?:is|are|was) (.+)")
POSSESSION_WITH_VERB = re.compile(r"my (\w+(?: \w+)?) (is|are|was|were|has|have|had) (.+)")
POSSESSION = re.compile(r"my (\w+) (.+)")
AGE = re.compile(r"(\d+|\w+ty(?:-\w+)?) years old")
AMOUNT = re.compile(r"(two|three|four|five|six|seven|eight|nine|ten|\d+|several|many) (.+)")
PERFECT = re.compile(r"(?:been|never|always|not)?\s*(\w+ed|been|gone|done|seen|taken|made|played|worked)\b(.*)")


def in_third_person(fact: str, name: str, random: Random) -> str:
    text = f" {fact.strip()} "
    whose = random.choice([f"{name}'s", "their"])
    for pattern, replacement in THIRD_PERSON:
        said = replacement.format(name=name, whose=whose)
        text = re.sub(rf"\b{pattern}\b", lambda _: said, text, flags=re.IGNORECASE)
    text = VERBS_WITH_S.sub(lambda match: f"{name} {match[1]}s", text)
    return re.sub(r"\bi\b", lambda _: name, text, flags=re.IGNORECASE).strip()


def questions_about(fact: str, name: str, random: Random) -> list[str]:
    """All questions that the templates make of a fact that `name` has said of themself."""
    said = re.sub(r"\s+", " ", fact.strip().rstrip(".!").strip())
    sentence = re.sub(r"^i've\b", "i have", re.sub(r"^i'm\b", "i am", said[:1].lower() + said[1:]))
    questions: list[str] = []
    if match := SUBJECT_AND_VERB.match(sentence):
        questions = _about_doing(match[1], _as_of_others(match[2]), said, name, random)
    if match := FAVOURITE.match(sentence):
        questions = [f"What is {name}'s favorite {match[1]}?"] * 3 + [f"Which {match[1]} does {name} like most?"]
    elif sentence.startswith("my "):
        questions += _about_possession(sentence, name, random)
    if topic := _topic(said, random):
        questions += [
            f"What did {name} say about {topic}?",
            f"What did {name} mention about {topic}?",
            f"{name} {topic}",
            f"Tell me about {name} and {topic}.",
        ]
    return questions


def present_of(past: str) -> str | None:
    """The verb of a past form, by rules that are right for common verbs."""
    if past in IRREGULAR_PASTS:
        return IRREGULAR_PASTS[past]
    if past.endswith("ied"):
        return past[:-3] + "y"
    if not past.endswith("ed") or len(past) <= 4:
        return None
    stem = past[:-2]
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "ls":
        return stem[:-1]
    lost_e = re.search(r"([^aeiou][aeiou][^aeiouwxy]|[vczgs]|at|ir|ur|bl|pl|tl|dl|gl)$", stem)
    kept = re.search(r"(en|er|on|it|el|op|ss|ook|ain|ing|ng)$", stem)
    return stem + "e" if lost_e and not kept else stem


def _about_doing(verb: str, rest: str, said: str, name: str, random: Random) -> list[str]:
    def shortened() -> str:
        return _shortened(rest, random)

    past = present_of(verb)
    if verb in ("am", "was"):
        return _about_being("is" if verb == "am" else "was", rest, name, random)
    if verb in ("have", "has", "own"):
        return _about_having(rest, name, random)
    if past:
        return [f"When did {name} {past} {shortened()}?"] * 2 + [
            f"Where did {name} {past} {shortened()}?",
            f"What did {name} {past}?",
            f"Why did {name} {past} {shortened()}?",
            f"Did {name} {past} {rest}?",
            f"Who did {name} {past} {shortened()} with?",
        ]
    if verb in ("live", "reside", "stay"):
        return [f"Where does {name} live?", f"Which city does {name} live in?", f"Does {name} live {rest}?"]
    if verb in ("work", "study"):
        subject = f"What does {name} do for work?" if verb == "work" else f"What does {name} study?"
        return [f"Where does {name} {verb}?", subject, f"What is {name}'s job?", f"Does {name} {verb} {rest}?"]
    if verb in ("like", "love", "enjoy", "prefer"):
        return [
            f"What does {name} {verb}?",
            f"What does {name} like to do?",
            f"What are {name}'s hobbies?",
            f"Does {name} {verb} {rest}?",
            f"How does {name} feel about {_without_article(shortened())}?",
            f"What does {name} {verb} about {_without_article(rest)}?",
        ]
    if verb in ("want", "plan", "hope", "wish", "need", "going"):
        return [
            f"What does {name} {verb} to do?",
            f"What are {name}'s plans?",
            f"What is {name}'s goal?",
            f"Does {name} {verb} {rest}?",
            f"Why does {name} {verb} {shortened()}?",
        ]
    if verb in ("can", "cannot", "do", "could", "would", "will"):
        why = verb in ("do", "can", "would")
        second = f"Why {verb} {name} {shortened()}?" if why else f"What {name} {verb} {shortened()}?"
        return [f"{in_third_person(said, name, random)}?", second]
    if verb.isalpha():
        return [
            f"What does {name} {verb}?",
            f"Does {name} {verb} {rest}?",
            f"How often does {name} {verb} {shortened()}?",
            f"Where does {name} {verb} {shortened()}?",
            f"Why does {name} {verb} {shortened()}?",
        ]
    return []


def _about_being(be: str, rest: str, name: str, random: Random) -> list[str]:
    if AGE.match(rest):
        return [f"How old is {name}?", f"What is {name}'s age?"]
    if re.match(r"(a|an) ", rest):
        return [
            f"What does {name} do for a living?",
            f"What is {name}'s job?",
            f"Who is {name}?",
            f"{be.capitalize()} {name} {rest}?",
            f"What kind of {_without_article(rest).split()[-1]} {be} {name}?",
        ]
    if re.match(r"\w+ing\b", rest):
        doing = [f"{word} {be} {name} {_shortened(rest, random)}?" for word in ("What", "Why", "When")]
        return [f"What {be} {name} doing?"] + doing
    if re.match(r"(from|in|at) ", rest):
        origin = f"Where {be} {name} from?" if rest.startswith("from") else f"Where {be} {name}?"
        return [origin, f"Where does {name} live?"]
    return [
        f"{be.capitalize()} {name} {rest}?",
        f"How does {name} feel about {_topic(rest, random) or 'it'}?",
        f"Why {be} {name} {_shortened(rest, random)}?",
    ]


def _about_having(rest: str, name: str, random: Random) -> list[str]:
    questions = []
    if amount := AMOUNT.match(rest):
        questions = [f"How many {amount[2]} does {name} have?"] * 2
    if perfect := PERFECT.match(rest):
        done = perfect[1] + perfect[2]
        return questions + [f"Has {name} ever {done}?", f"How long has {name} {done}?"]
    possession = f"Does {name} have {rest}?"
    if random.random() < 0.2:
        possession = f"What {random.choice(['pets', 'things', 'hobbies', 'family'])} does {name} have?"
    kind = f"What kind of {_without_article(_shortened(rest, random))} does {name} have?"
    return questions + [possession, kind, f"What does {name} have?"]


def _about_possession(sentence: str, name: str, random: Random) -> list[str]:
    if match := POSSESSION_WITH_VERB.match(sentence):
        thing, verb, rest = match[1], match[2], _as_of_others(match[3])
        is_being = verb in ("is", "are", "was", "were")
        return [
            f"What {verb} {name}'s {thing}?" if is_being else f"What does {name}'s {thing} have?",
            f"What do we know about {name}'s {thing}?",
            f"Who is {name}'s {thing}?",
            f"{verb.capitalize()} {name}'s {thing} {rest}?",
        ]
    if match := POSSESSION.match(sentence):
        return [
            f"What did {name} say about their {match[1]}?",
            f"What does {name}'s {match[1]} do?",
            f"{name}'s {match[1]} {_shortened(_as_of_others(match[2]), random)}?",
        ]
    return []


def _as_of_others(text: str) -> str:
    for pattern, replacement in [("i", "they"), ("my", "their"), ("me", "them"), ("myself", "themself")]:
        text = re.sub(rf"\b{pattern}\b", replacement, text)
    return text


def _shortened(text: str, random: Random) -> str:
    """Half of the time only the beginning of a longer text."""
    words = text.split()
    if len(words) > 3 and random.random() < 0.5:
        words = words[: random.randint(2, len(words) - 1)]
    return " ".join(words)


def _without_article(text: str) -> str:
    return re.sub(r"^(a|an|the|my|some|to)\s+", "", text)


def _topic(text: str, random: Random) -> str | None:
    """One to three neighbouring words that carry meaning."""
    words = re.findall(r"[A-Za-z0-9'-]+", text)
    starts = [place for place, word in enumerate(words) if word.lower() not in EMPTY_WORDS]
    if not starts:
        return None
    start = random.choice(starts)
    end = start + 1
    while end < len(words) and end - start < 3 and words[end].lower() not in STOP_WORDS and random.random() < 0.7:
        end += 1
    return " ".join(words[start:end])
