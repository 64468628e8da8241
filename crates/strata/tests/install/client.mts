// Every method of the TypeScript client against a real server. It is compiled strictly first.

import { Strata, StrataError, type MemoryResponse, type SearchResponse } from "strata-memory";

declare const process: { env: Record<string, string> };

function assert(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

async function refused(status: number, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    assert(error instanceof StrataError && error.status === status, `${status} and not ${error}`);
    assert(status === 0 || (error.requestId && error.code), "a refusal has an id and a code");
    return;
  }
  throw new Error("the call was not refused");
}

const url = process.env["STRATA_ADDRESS"]!;
const memory = new Strata({ url, user: "pia", session: "loom/2" });
assert((await memory.ready()).status === "ready", "the server is ready");
const message = { role: "user" as const, content: "The blue warp is finished. 织机很旧。" };
const first = await memory.record([message], { idempotency_key: "once" });
const again = await memory.record([message], { idempotency_key: "once" });
assert(first.turns[0]?.id === again.turns[0]?.id, "a repeated call records nothing");

const added = await memory.add("Pia is allergic to wool", { kind: "fact" });
assert(added.results[0]?.event === "ADD", "a statement is added");
const found: SearchResponse = await memory.search("what is Pia allergic to", { top_k: 1, kinds: ["memory"] });
const item = found.results[0];
assert(item?.memory === "Pia is allergic to wool", "a statement is found");
const kept: MemoryResponse = await memory.memory(item.id);
assert(kept.scope === "user", "a statement belongs to the user");
assert((await memory.revise(item.id, "Pia is allergic to silk")).memory.endsWith("silk"), "a statement is revised");
assert((await memory.history(item.id)).length === 2, "the former statement stays");
assert((await memory.deleteMemory(item.id)).deleted === 1, "a memory is deleted");
assert((await memory.memories({ limit: 5 })).results.length === 0, "a deleted memory is not listed");
await memory.restore(item.id);
assert((await memory.memories()).results.length === 1, "a memory is restored");

assert((await memory.session()).turn_count === 1, "the session has a turn");
assert((await memory.turns("loom/2", { limit: 3 })).turns[0]?.content === message.content, "a turn is read");
assert((await memory.sessions()).sessions[0]?.id === "loom/2", "the session is listed");
const prompt = await memory.prompt("What is finished?", { format: "chat" });
assert(prompt.tokens > 0 && JSON.stringify(prompt.messages).includes("warp"), "the prompt shows the turn");
assert((await memory.deleteSession("loom/2")).removed.turns === 1, "a session is destroyed");

await refused(404, () => memory.session());
await refused(400, () => memory.memory("no id"));
await refused(0, () => new Strata({ url: "http://127.0.0.1:9" }).ready());
let wrong = "";
try {
  new Strata({ url: "127.0.0.1:8100" });
} catch (error) {
  wrong = String(error);
}
assert(wrong.includes("http://"), "a wrong address is refused");
