// Opens the inspector in a real browser: every page without a console error and without a finding of axe-core, in light and
// dark, at the width of a phone and of a desk; search, edit, delete, restore and forget; hostile and huge content.
//
// node inspector.mjs URL NODE_FOLDER SCREENSHOTS CHROMIUM PAGES
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [root, folder, screenshots, executablePath, pages] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { paths, hostile, huge, memory, request } = JSON.parse(pages);
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

/// A page whose errors are collected.
async function open(context) {
  const page = await context.newPage();
  // An unoptimised build on a busy machine takes its time.
  page.setDefaultTimeout(240_000);
  page.on("console", (message) => check(message.type() !== "error", `${page.url()}: console: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `${page.url()}: ${error}`));
  page.on("dialog", async (dialog) => {
    check(false, `${page.url()}: a dialog opened: ${dialog.message()}`);
    await dialog.dismiss();
  });
  return page;
}

const settled = (page) => page.waitForLoadState("networkidle");

// Every page, in both schemes and widths.
for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of [[390, 844], [1280, 900]]) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height } });
    const page = await open(context);
    for (const [name, path] of Object.entries(paths)) {
      const answer = await page.goto(root + path);
      check(answer.ok(), `${path}: ${answer.status()}`);
      await settled(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      check(wide <= 0, `${path}: ${wide} px wider than the window of ${width} px`);
      await page.evaluate(axe);
      const result = await page.evaluate(() => globalThis.axe.run());
      for (const violation of result.violations) {
        const nodes = violation.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("\n  ");
        check(false, `${path} (${colorScheme}, ${width}): ${violation.id}: ${violation.help}\n  ${nodes}`);
      }
      await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${width}.png`), fullPage: true });
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

await browser.close();
rmSync(profile, { recursive: true, force: true });
if (problems.length > 0) {
  console.error(problems.join("\n"));
  process.exit(1);
}
console.log("ok");
