"""Samples what Strata learns from the conversations of benchmark sets, so that people can judge it.

    sample.py SETS OUT --strata BINARY [--seed 7] [--each 75] [--conversations 8] [--turns 110] [--after 0]

SETS is a folder of `NAME.conversations.jsonl[.gz]`. From each set some conversations are drawn, their first turns (or
those after the first `--after`, where there are so many) are recorded through `strata serve`, and of the memories
learned from them `--each` are drawn. OUT gets one JSON object a
line: set, conversation, the turns it was learned from, kind, memory, the messages, and a digest of set, turns and
memory. `verdicts.jsonl` beside this script holds verdicts by that digest, without the texts, which are not ours.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import random
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SETS = ["locomo", "realtalk", "beam100k", "madial_zh"]


def lines(folder, name):
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.exists():
            opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
            with opened as file:
                return [json.loads(line) for line in file]
    raise SystemExit(f"no {name}.jsonl in {folder}")


def call(base, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.read().decode()}") from error


def drawn_turns(conversation, given):
    turns = []
    for session in conversation["sessions"]:
        for turn in session["turns"]:
            if turn["text"].strip():
                turns.append((session, turn))
    start = given.after if len(turns) >= given.after + given.turns else 0
    return turns[start:start + given.turns]


def message(turn, when):
    speaker = turn["speaker"]
    role = speaker if speaker in ("user", "assistant") else "user"
    said = {"role": role, "content": turn["text"]}
    if role != speaker:
        said["name"] = speaker
    if when:
        said["created_at"] = when[:10]
    return said


def learn(base, user, conversation, given):
    """Records the turns and returns the texts of the turns by Strata's ids."""
    texts, batch, session = {}, [], None
    turns = drawn_turns(conversation, given)
    for place, (source, turn) in enumerate(turns):
        if source["session_id"] != session and batch:
            texts.update(record(base, user, session, batch))
            batch = []
        session = source["session_id"]
        batch.append((turn, turn.get("timestamp") or source.get("timestamp")))
        if place + 1 == len(turns):
            texts.update(record(base, user, session, batch))
    return texts


def record(base, user, session, batch):
    messages = [message(turn, when) for turn, when in batch]
    recorded = call(base, "POST", "/turns", {"user_id": user, "session_id": session, "messages": messages})
    ids = [turn["id"] for turn in recorded["turns"]]
    return {id: (turn["turn_id"], turn["speaker"], turn["text"]) for id, (turn, _) in zip(ids, batch)}


def wait(base, users):
    for user in users:
        while True:
            jobs = call(base, "GET", f"/jobs?user_id={user}&status=queued")
            leased = call(base, "GET", f"/jobs?user_id={user}&status=leased")
            open_jobs = [job for job in jobs["jobs"] + leased["jobs"] if job["kind"] == "extract"]
            if not open_jobs:
                break
            time.sleep(1)


def memories(base, user):
    found = call(base, "GET", f"/memories?user_id={user}&limit=1000")["results"]
    return sorted(found, key=lambda memory: memory["memory"])


def sampled(base, chance, given):
    for name in SETS:
        conversations = lines(given.sets, f"{name}.conversations")
        drawn = chance.sample(conversations, min(given.conversations, len(conversations)))
        known = {}
        for place, conversation in enumerate(drawn):
            user = f"{name}-{place}"
            known[user] = (conversation, learn(base, user, conversation, given))
        wait(base, known)
        found = []
        for user, (conversation, texts) in known.items():
            for memory in memories(base, user):
                turns = [texts[turn["id"]] for turn in memory["source"]["turns"] if turn["id"] in texts]
                found.append((conversation["conversation_id"], memory, turns))
        for conversation, memory, turns in chance.sample(found, min(given.each, len(found))):
            ids = [turn for turn, _, _ in turns]
            digest = hashlib.sha256(json.dumps([name, conversation, ids, memory["memory"]]).encode()).hexdigest()[:16]
            yield {
                "digest": digest, "set": name, "conversation": conversation, "turns": ids, "kind": memory["kind"],
                "memory": memory["memory"], "said": [f"{speaker}: {text}" for _, speaker, text in turns],
            }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--strata", required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--each", type=int, default=75)
    parser.add_argument("--conversations", type=int, default=8)
    parser.add_argument("--turns", type=int, default=110)
    parser.add_argument("--after", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        store = f"sqlite:{folder}/store.db"
        server = subprocess.Popen([given.strata, "serve", "--listen", f"127.0.0.1:{port}", "--store", store])
        base = f"http://127.0.0.1:{port}"
        try:
            for _ in range(100):
                try:
                    call(base, "GET", "/readyz")
                    break
                except OSError:
                    time.sleep(0.1)
            chance = random.Random(given.seed)
            with given.out.open("w", encoding="utf-8") as out:
                for row in sampled(base, chance, given):
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
