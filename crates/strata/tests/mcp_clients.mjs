// The official TypeScript clients of MCP, and the Inspector's command line, against Strata over both transports.
//
// Usage: mcp_clients.mjs BINARY STORE URL FOLDER — stdio is tried with BINARY on STORE, HTTP with the server at URL, which
// serves the same store. The packages are in FOLDER.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const [binary, store, url, folder] = process.argv.slice(2);
const require = createRequire(folder + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const run = promisify(execFile);
const cwd = dirname(store);
const arguments_ = (user) => ["mcp", "--store", "sqlite:" + store, "--user", user];

// The two generations of the client, which differ in their packages alone.
async function generations() {
  const one = await load("@modelcontextprotocol/sdk/client/index.js");
  const [http, stdio] = [
    await load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    await load("@modelcontextprotocol/sdk/client/stdio.js"),
  ];
  const two = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  return {
    one: { Client: one.Client, Http: http.StreamableHTTPClientTransport, Stdio: stdio.StdioClientTransport },
    two: { Client: two.Client, Http: two.StreamableHTTPClientTransport, Stdio: StdioClientTransport },
  };
}

async function remembers(client) {
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 10 && tools.some((tool) => tool.name === "search_memories"));
  const call = (name, args) => client.callTool({ name, arguments: args });
  const added = await call("add_memory", { text: "my canoe is called Heron", session_id: "told" });
  assert.equal(added.structuredContent.results[0].event, "ADD");
  await call("add_memory", { text: "我的船停在旧码头", session_id: "told" });
  const found = await call("search_memories", { query: "what is my canoe called" });
  assert.equal(found.structuredContent.results[0].memory, "my canoe is called Heron");
  const chinese = await call("search_memories", { query: "我的船停在哪里" });
  assert.equal(chinese.structuredContent.results[0].memory, "我的船停在旧码头");
  const refused = await call("add_memory", { text: "x", colour: "red" });
  assert.ok(refused.isError && refused.content[0].text.includes("unknown field `colour`"), refused.content[0].text);
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  assert.ok(JSON.parse(contents[0].text).memory);
  await assert.rejects(client.callTool({ name: "forget_everything", arguments: {} }));
}

for (const [name, { Client, Http, Stdio }] of Object.entries(await generations())) {
  const headers = { "X-Strata-User": "ts-http-" + name };
  const transports = {
    http: new Http(new URL(url + "/mcp"), { requestInit: { headers } }),
    stdio: new Stdio({ command: binary, args: arguments_("ts-stdio-" + name), cwd, stderr: "inherit" }),
  };
  for (const [kind, transport] of Object.entries(transports)) {
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(transport);
    await remembers(client);
    await client.close();
    console.log("client", name, kind, "done");
  }
}

const inspector = join(folder, "node_modules/@modelcontextprotocol/inspector");
const program = join(inspector, require(inspector + "/package.json").bin["mcp-inspector"]);

async function inspect(target, ...options) {
  // Its settings go into a folder of the test's.
  const env = { ...process.env, HOME: cwd, MCP_CATALOG_PATH: join(cwd, "catalog.json") };
  const { stdout } = await run(process.execPath, [program, "--cli", ...target, ...options], { env, cwd });
  return JSON.parse(stdout);
}

for (const [kind, target] of Object.entries({
  http: [url + "/mcp", "--transport", "http", "--header", "X-Strata-User: inspector-http"],
  stdio: [binary, ...arguments_("inspector-stdio")],
})) {
  const { tools } = await inspect(target, "--method", "tools/list", "--strict");
  assert.ok(tools.length >= 10);
  const call = (tool, argument) =>
    inspect(target, "--method", "tools/call", "--tool-name", tool, "--tool-arg", argument);
  await call("add_memory", "text=my canoe is called Heron");
  const found = await call("search_memories", "query=what is my canoe called");
  assert.equal(found.structuredContent.results[0].memory, "my canoe is called Heron");
  console.log("inspector", kind, "done");
}
