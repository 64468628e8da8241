// Opens the inspector in a real browser: every page without a console error and without a finding of axe-core, in light and
// dark, at the width of a phone and of a desk; search, edit, delete, restore and forget; hostile and huge content; the keyboard;
// signing in with a key, and forms of other sites.
//
// node inspector.mjs URL NODE_FOLDER SCREENSHOTS CHROMIUM PAGES
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [root, folder, screenshots, executablePath, pages] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { paths, hostile, huge, memory, request, large, keyed, vault } = JSON.parse(pages);
mkdirSync(screenshots, { recursive: true });

const problems = [];
process.on("uncaughtException", (error) => {
  console.error([...problems, String(error.stack)].join("\n"));
  process.exit(1);
});
const check = (holds, what) => {
  if (!holds) problems.push(what);
};

const profile = mkdtempSync(join(tmpdir(), "strata-browser-"));
const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, headless: true, args, env: { ...process.env, HOME: profile } });

/// A page whose errors are collected. Where a failure is expected, the browser may report that a page was refused.
async function open(context, { mayFail = false } = {}) {
  const page = await context.newPage();
  // An unoptimised build on a busy machine takes its time.
  page.setDefaultTimeout(240_000);
  const isExpected = (text) => mayFail && text.startsWith("Failed to load resource: the server responded with a status of 4");
  page.on("console", (message) => check(message.type() !== "error" || isExpected(message.text()), `${page.url()}: console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${page.url()}: ${error}`));
  page.on("dialog", async (dialog) => {
    check(false, `${page.url()}: a dialog opened: ${dialog.message()}`);
    await dialog.dismiss();
  });
  return page;
}

const settled = (page) => page.waitForLoadState("networkidle");

/// Looks at a page: its width, axe-core, and a screenshot.
async function look(page, name, colorScheme, width) {
  await settled(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(wide <= 0, `${name}: ${wide} px wider than the window of ${width} px`);
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run());
  for (const violation of result.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("\n  ");
    check(false, `${name} (${colorScheme}, ${width}): ${violation.id}: ${violation.help}\n  ${nodes}`);
  }
  await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${width}.png`), fullPage: true });
}

const failures = {
  "failure-gone": [root + "/inspect/sessions/none", 404],
  "failure-wrong": [root + "/inspect/memories/x", 400],
  "failure-user": [root + "/inspect?user=*", 400],
  "failure-page": [root + "/inspect/nothing", 404],
};

// Every page, in both schemes and widths.
for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of [[390, 844], [1280, 900]]) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height } });
    const page = await open(context);
    for (const [name, path] of Object.entries(paths)) {
      const answer = await page.goto(root + path);
      check(answer.ok(), `${path}: ${answer.status()}`);
      await look(page, name, colorScheme, width);
    }
    await page.goto(`${vault}/inspect`);
    check((await page.getByText("Files that cannot be used").count()) === 1, "a spoilt file is named");
    await look(page, "overview-files", colorScheme, width);
    const failing = await open(context, { mayFail: true });
    for (const [name, [address, status]] of Object.entries(failures)) {
      const answer = await failing.goto(address);
      check(answer.status() === status, `${address}: ${answer.status()}`);
      await look(failing, name, colorScheme, width);
    }
    await context.close();
  }
}

// Search while typing, then edit, delete, restore and forget.
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await open(context);
await page.goto(`${root}/inspect/memories`);
await page.getByLabel("Search").pressSequentially("kayak", { delay: 20 });
await page.waitForFunction(() => document.querySelectorAll("#found li").length === 1);
// A search for the first letters may already have found the same memory; the address follows the last one.
await page.waitForFunction(() => location.search.includes("q=kayak"));
await page.getByLabel("Search").fill("kaya");
await page.waitForFunction(() => document.querySelector("#found li")?.textContent.includes("kayak"));
await page.locator("#found a").first().click();
await page.getByLabel("Statement", { exact: true }).fill("keeps the kayak in the boathouse");
await page.getByRole("button", { name: "Save" }).click();
await page.getByText("The memory was edited").waitFor();
check((await page.locator("h1").textContent()).includes("boathouse"), "the edited statement is shown");
await page.getByRole("button", { name: "Delete" }).click();
await page.getByText("It can be restored.", { exact: false }).first().waitFor();
await page.getByRole("button", { name: "Restore" }).click();
await page.getByText("The memory is back").waitFor();
await page.getByRole("button", { name: "Forget" }).click();
check(!page.url().includes("done=forgotten"), "without the box nothing is destroyed");
await page.getByLabel("Destroy it for good").check();
await page.getByRole("button", { name: "Forget" }).click();
await page.getByText("were destroyed").waitFor();

// A question is tried while typing, and a complaint is filed.
await page.goto(`${root}/inspect/try`);
await page.getByLabel("Question or statement").fill("Which day is the choir?");
await page.waitForFunction(() => document.querySelector("#tried")?.textContent.includes("Recalled"));
await page.goto(root + request);
await page.getByLabel("What it forgot").fill("it forgot the second rehearsal");
await page.getByRole("button", { name: "It forgot" }).click();
await page.getByText("Your complaint was filed").waitFor();

// A job that was given up is tried again.
await page.goto(`${root}/inspect`);
for (const said of ["1 job of the kind “summarise” was given up.", "The last error of a job, ", ": the model “owl” refuses: no credit"]) {
  check((await page.locator("[aria-labelledby=failures]").textContent()).includes(said), `the overview says: ${said}`);
}
await page.getByRole("button", { name: "Try again" }).click();
await page.getByText("The job is in the queue again").waitFor();
check((await page.getByRole("button", { name: "Try again" }).count()) === 0, "the job is no longer given up");

// The prompt of a large memory comes after its page, and without a script on demand.
await page.goto(large + paths.prompt);
await page.locator("#shown h2#messages").waitFor();
check((await page.getByText("A large memory").count()) === 0, "the prompt of a large memory replaces the note");

// Every turn of a long session can be reached, and the page of a turn leads back to it.
await page.goto(root + paths["session-long"]);
for (let pages = 0; (await page.getByRole("link", { name: "Earlier turns" }).count()) > 0 && pages < 5; pages++) {
  await page.getByRole("link", { name: "Earlier turns" }).click();
  await settled(page);
}
check((await page.locator("#turn-0").count()) === 1, "the first turn of a long session is shown");
await page.locator("#turn-0 .meta a").click();
await page.locator(".crumbs a").last().click();
check((await page.locator("#turn-0").count()) === 1, "a turn's page leads back to the turn");

// Versions of a summary show what has changed, and a dispute names the other memory.
await page.goto(root + paths.summaries);
check((await page.locator(".versions > li").count()) >= 3, "three versions of the summary are shown");
check((await page.locator(".versions ins").count()) >= 2, "the versions show what was added");
await page.goto(root + paths["memory-disputed"]);
check((await page.locator("[aria-labelledby=dispute] a.statement").count()) === 1, "the dispute names the other memory");

// Hostile and huge content is text and nothing else.
for (const path of hostile) {
  await page.goto(root + path);
  await settled(page);
  check(await page.evaluate(() => globalThis.hacked === undefined), `${path}: a stored script ran`);
  check((await page.locator("main script, main img, main iframe").count()) === 0, `${path}: stored markup became elements`);
}
for (const path of huge) {
  const answer = await page.goto(root + path);
  check((await answer.body()).length <= 100_000, `${path}: ${(await answer.body()).length} bytes`);
}

// The keyboard reaches the content first, and the script is not needed.
await page.goto(`${root}/inspect`);
await page.keyboard.press("Tab");
check((await page.evaluate(() => document.activeElement.textContent)) === "Skip to the content", "the first stop skips the navigation");
check((await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle)) !== "none", "the focus is seen");
await page.keyboard.press("Enter");
check((await page.evaluate(() => document.activeElement.id)) === "main", "the skip link leads to the content");
/// Presses Tab until an element has the focus.
async function tabTo(what, selector) {
  for (let stops = 0; stops < 80; stops++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return;
  }
  check(false, `the keyboard does not reach ${what}`);
}
await page.goto(`${root}/inspect`);
await tabTo("the memories", "nav a[href='/inspect/memories'], nav a[href^='/inspect/memories?']");
await page.keyboard.press("Enter");
await page.waitForURL(/\/inspect\/memories/);
await tabTo("the search", "#q, input[type=search], input[name=q]");
await page.keyboard.type("choir");
await page.keyboard.press("Enter");
await page.waitForURL(/q=choir/);
await tabTo("a memory", "#found a");
await page.keyboard.press("Enter");
await page.waitForURL(/\/inspect\/memories\/[0-9a-f]/);
await tabTo("the statement", "textarea[name=content]");
await page.keyboard.press("End");
await page.keyboard.type(" at six");
await tabTo("the button", "button.primary");
await page.keyboard.press("Enter");
await page.getByText("The memory was edited").waitFor();
check((await page.locator("h1").textContent()).includes("at six"), "a memory is edited by the keyboard alone");

const plain = await browser.newContext({ javaScriptEnabled: false });
const bare = await open(plain);
await bare.goto(`${root}/inspect/memories`);
await bare.getByLabel("Search").fill("choir");
await bare.getByRole("button", { name: "Search" }).click();
check((await bare.locator("#found li").count()) >= 1, "search works without a script");
await bare.goto(root + memory);
await bare.getByLabel("Statement", { exact: true }).fill("sings in the choir on Wednesdays");
await bare.getByRole("button", { name: "Save" }).click();
check((await bare.locator("h1").textContent()).includes("Wednesdays"), "editing works without a script");

await bare.goto(large + paths.prompt);
check((await bare.getByText("A large memory").count()) === 1, "the page of a large memory says that its prompt comes later");
await bare.getByRole("button", { name: "Show the prompt" }).click();
await bare.locator("#shown h2#messages").waitFor();

// Other sites: one on this address with another port, whose requests carry cookies, and one under another name.
const forged = createServer((_, answer) => {
  answer.setHeader("Content-Type", "text/html");
  answer.end(`<form method="post" action="${keyed.root}${keyed.memory}/delete"><input name="form_token" value="guess"><button>Win a boat</button></form>`);
});
await new Promise((listening) => forged.listen(0, "127.0.0.1", listening));
const port = forged.address().port;

/// Signs in with a key.
async function signIn(page, key) {
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ colorScheme, viewport: { width: 390, height: 844 } });
  const person = await open(context, { mayFail: true });
  await person.goto(`${keyed.root}/inspect/memories?q=kelp`);
  check(person.url().includes("/inspect/sign-in"), `without a key a person signs in first: ${person.url()}`);
  await signIn(person, "strata_00000000000000000000000000000000");
  await person.getByRole("alert").waitFor();
  await look(person, "sign-in-refused", colorScheme, 390);
  await signIn(person, keyed.key);
  await person.waitForURL(`${keyed.root}/inspect/memories?q=kelp`);
  check((await person.locator("#found li").count()) === 1, "the page that was asked for is shown");
  const cookies = await context.cookies(`${keyed.root}/inspect`);
  check(cookies.length === 2 && cookies.every((one) => one.httpOnly && one.sameSite === "Strict" && one.path === "/inspect"), `the cookies: ${JSON.stringify(cookies)}`);
  check((await person.evaluate(() => document.cookie)) === "", "no script reads a cookie");
  check((await context.cookies(`${keyed.root}/memories`)).length === 0, "the API gets no cookie");
  check((await person.evaluate(() => fetch("/memories").then((answer) => answer.status))) === 401, "the API needs its own key");
  // The second one sends no cookie at all, so it is not signed in either.
  for (const [site, refusals] of [[`http://127.0.0.1:${port}`, [403]], [`http://localhost:${port}`, [303, 401, 403]]]) {
    const other = await open(context, { mayFail: true });
    await other.goto(site);
    const [answer] = await Promise.all([
      other.waitForResponse((answer) => answer.request().method() === "POST"),
      other.getByRole("button").click(),
    ]);
    check(refusals.includes(answer.status()), `the form of ${site}: ${answer.status()}`);
    await other.close();
  }
  await person.goto(keyed.root + keyed.memory);
  check((await person.getByRole("button", { name: "Delete" }).count()) === 1, "no other site deletes a memory");
  await look(person, "memory-keyed", colorScheme, 390);
  await person.getByRole("button", { name: "Sign out" }).click();
  await person.waitForURL(/\/inspect\/sign-in/);
  await person.goto(keyed.root + keyed.memory);
  check(person.url().includes("/inspect/sign-in"), "after signing out, the key is needed again");
  await signIn(person, keyed.reader);
  await person.waitForURL(keyed.root + keyed.memory);
  check((await person.locator("main form").count()) === 0, "a key that only reads gets no forms");
  await context.close();
}
forged.close();

await browser.close();
rmSync(profile, { recursive: true, force: true });
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log("ok");
