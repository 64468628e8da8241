// What programs do with the JavaScript clients of the providers' APIs, against the server whose root URL is the only
// argument. The packages are in the folder that the second argument names.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [root, folder] = process.argv.slice(2);
const require = createRequire(folder + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const url = root + "/v1";
const apiKey = "sk-test";
const headers = (user, session) => ({ "X-Strata-User": user, "X-Strata-Session": session });
const told = "my canoe is called Heron";
const asked = "what is my canoe called";

async function openai() {
  const { default: OpenAI } = await load("openai");
  const client = (session) => new OpenAI({ baseURL: url, apiKey, defaultHeaders: headers("js-openai", session) });
  const answer = await client("told").responses.create({ model: "m", input: told });
  assert.equal(answer.output_text, "reply to " + told);
  let words = "";
  for await (const event of await client("asked").responses.create({ model: "m", input: asked, stream: true })) {
    if (event.type === "response.output_text.delta") words += event.delta;
  }
  assert.equal(words, "reply to " + asked);
  const chat = await client("chat").chat.completions.create({ model: "m", messages: [{ role: "user", content: asked }] });
  assert.equal(chat.choices[0].message.content, "reply to " + asked);
}

async function anthropic() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = (session) => new Anthropic({ baseURL: root, apiKey, defaultHeaders: headers("js-anthropic", session) });
  const ask = (content) => ({ model: "m", max_tokens: 50, messages: [{ role: "user", content }] });
  const answer = await client("told").messages.create(ask(told));
  assert.equal(answer.content[0].text, "reply to " + told);
  const final = await client("asked").messages.stream(ask(asked)).finalMessage();
  assert.equal(final.content[0].text, "reply to " + asked);
  const call = await client("tools").messages.create(ask("call weather"));
  assert.deepEqual(call.content[0].input, { place: "Lisbon" });
}

async function vercel() {
  const { generateText, streamText } = await load("ai");
  const { createOpenAI } = await load("@ai-sdk/openai");
  const { createAnthropic } = await load("@ai-sdk/anthropic");
  const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
  const makers = {
    openai: (session) => createOpenAI({ baseURL: url, apiKey, headers: headers("js-vercel", session) })("m"),
    anthropic: (session) => createAnthropic({ baseURL: url, apiKey, headers: headers("js-vercel", session) })("m"),
    compatible: (session) =>
      createOpenAICompatible({ name: "strata", baseURL: url, apiKey, headers: headers("js-vercel", session) })("m"),
  };
  for (const [name, model] of Object.entries(makers)) {
    const answer = await generateText({ model: model(name + "-told"), prompt: told });
    assert.equal(answer.text, "reply to " + told, name);
    const stream = streamText({ model: model(name + "-asked"), prompt: asked });
    let words = "";
    for await (const word of stream.textStream) words += word;
    assert.equal(words, "reply to " + asked, name);
  }
}

async function ollama() {
  const { Ollama } = await load("ollama");
  const client = (session) => new Ollama({ host: root, headers: headers("js-ollama", session) });
  const answer = await client("told").chat({ model: "m", messages: [{ role: "user", content: told }] });
  assert.equal(answer.message.content, "reply to " + told);
  let words = "";
  for await (const part of await client("asked").chat({ model: "m", messages: [{ role: "user", content: asked }], stream: true })) {
    words += part.message.content;
  }
  assert.equal(words, "reply to " + asked);
}

for (const step of [openai, anthropic, vercel, ollama]) {
  await step();
  console.log(step.name, "done");
}
