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
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const imageUrl = "data:image/png;base64," + pixel;
const failure = (error) => /as asked/.test(error.message + JSON.stringify(error.responseBody ?? error.error ?? ""));

async function openai() {
  const { default: OpenAI } = await load("openai");
  const client = (session) => new OpenAI({ baseURL: url, apiKey, maxRetries: 0, defaultHeaders: headers("js-openai", session) });
  const answer = await client("told").responses.create({ model: "m", input: told });
  assert.equal(answer.output_text, "reply to " + told);
  let words = "";
  for await (const event of await client("asked").responses.create({ model: "m", input: asked, stream: true })) {
    if (event.type === "response.output_text.delta") words += event.delta;
  }
  assert.equal(words, "reply to " + asked);
  const chat = await client("chat").chat.completions.create({ model: "m", messages: [{ role: "user", content: asked }] });
  assert.equal(chat.choices[0].message.content, "reply to " + asked);
  let streamed = "";
  const asking = { model: "m", messages: [{ role: "user", content: asked }], stream: true };
  for await (const chunk of await client("chat-streamed").chat.completions.create(asking)) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
  }
  assert.equal(streamed, "reply to " + asked);
  const tools = [{ type: "function", name: "weather", strict: false, parameters: { type: "object", properties: {} } }];
  const input = [{ role: "user", content: "call weather" }];
  const call = (await client("tools").responses.create({ model: "m", input, tools })).output[0];
  assert.equal(call.arguments, '{"place":"Lisbon"}');
  input.push(call, { type: "function_call_output", call_id: call.call_id, output: "sunny" });
  const after = await client("tools").responses.create({ model: "m", input, tools });
  assert.equal(after.output_text, "reply to call weather");
  const parts = [{ type: "text", text: "what is this" }, { type: "image_url", image_url: { url: imageUrl } }];
  const seen = await client("image").chat.completions.create({ model: "m", messages: [{ role: "user", content: parts }] });
  assert.equal(seen.choices[0].message.content, "reply to what is this");
  await assert.rejects(client("errors").responses.create({ model: "m", input: "fail 422" }), failure);
}

async function anthropic() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = (session) => new Anthropic({ baseURL: root, apiKey, maxRetries: 0, defaultHeaders: headers("js-anthropic", session) });
  const ask = (content) => ({ model: "m", max_tokens: 50, messages: [{ role: "user", content }] });
  const system = [{ type: "text", text: "be brief", cache_control: { type: "ephemeral" } }];
  const answer = await client("told").messages.create({ ...ask(told), system });
  assert.equal(answer.content[0].text, "reply to " + told);
  const final = await client("asked").messages.stream(ask(asked)).finalMessage();
  assert.equal(final.content[0].text, "reply to " + asked);
  const call = await client("tools").messages.create(ask("call weather"));
  assert.deepEqual(call.content[0].input, { place: "Lisbon" });
  const result = { type: "tool_result", tool_use_id: call.content[0].id, content: "sunny" };
  const { messages, ...options } = ask("call weather");
  messages.push({ role: "assistant", content: call.content }, { role: "user", content: [result] });
  const after = await client("tools").messages.create({ ...options, messages });
  assert.equal(after.content[0].text, "reply to call weather");
  // Documents and marked parts stay as they are, also in the message in front of which memory is put.
  const marked = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const source = { type: "text", media_type: "text/plain", data: "The log of a voyage, in two parts." };
  const paper = { type: "document", source, title: "Log", citations: { enabled: true }, ...marked };
  const read = await client("document").messages.create(ask([paper, { type: "text", text: asked, ...marked }]));
  assert.equal(read.content[0].text, "reply to " + asked);
  const cached = ask([{ type: "text", text: "call weather", ...marked }]);
  const called = await client("cached-tools").messages.create(cached);
  const sunny = { ...result, tool_use_id: called.content[0].id, content: [{ type: "text", text: "sunny" }], ...marked };
  cached.messages.push({ role: "assistant", content: called.content }, { role: "user", content: [sunny] });
  const streamed = await client("cached-tools").messages.stream(cached).finalMessage();
  assert.equal(streamed.content[0].text, "reply to call weather");
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } };
  const seen = await client("image").messages.create(ask([image, { type: "text", text: "what is this" }]));
  assert.equal(seen.content[0].text, "reply to what is this");
  await assert.rejects(client("errors").messages.create(ask("fail 422")), failure);
}

async function vercel() {
  const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
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
    const inputSchema = jsonSchema({ type: "object", properties: { place: { type: "string" } } });
    const weather = tool({ description: "the weather of a place", inputSchema, execute: async () => "sunny" });
    const stopWhen = stepCountIs(3);
    const called = await generateText({ model: model(name + "-tools"), prompt: "call weather", tools: { weather }, stopWhen });
    assert.equal(called.text, "reply to call weather", name);
    const content = [{ type: "text", text: "what is this" }, { type: "image", image: Buffer.from(pixel, "base64") }];
    const seen = await generateText({ model: model(name + "-image"), messages: [{ role: "user", content }] });
    assert.equal(seen.text, "reply to what is this", name);
    const failing = generateText({ model: model(name + "-errors"), prompt: "fail 422", maxRetries: 0 });
    await assert.rejects(failing, failure, name);
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
  const messages = [{ role: "user", content: "call weather" }];
  const call = await client("tools").chat({ model: "m", messages });
  assert.deepEqual(call.message.tool_calls[0].function.arguments, { place: "Lisbon" });
  messages.push(call.message, { role: "tool", tool_name: "weather", content: "sunny" });
  assert.equal((await client("tools").chat({ model: "m", messages })).message.content, "reply to call weather");
  const image = [{ role: "user", content: "what is this", images: [pixel] }];
  assert.equal((await client("image").chat({ model: "m", messages: image })).message.content, "reply to what is this");
  await assert.rejects(client("errors").chat({ model: "m", messages: [{ role: "user", content: "fail 503" }] }), failure);
}

for (const step of [openai, anthropic, vercel, ollama]) {
  await step();
  console.log(step.name, "done");
}
