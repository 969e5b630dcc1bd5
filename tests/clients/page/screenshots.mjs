// Takes the pictures of docs/page.md: `node screenshots.mjs URL [FOLDER]`. The folder is docs/images/ unless named.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser } from "./browser.mjs";

const [url, folder = fileURLToPath(new URL("../../../docs/images/", import.meta.url))] = process.argv.slice(2);
if (!url) {
  console.error("usage: node screenshots.mjs URL [FOLDER]");
  process.exit(2);
}
const question = process.env.VERBATIM_PAGE_PROMPT ?? "Write a Python function that returns the n-th Fibonacci number.";

async function ask(page) {
  await page.fill("#prompt", question);
  await page.press("#prompt", "Enter");
  await page.waitForSelector(".turn.model:not([aria-busy]) .facts", { timeout: 300_000 });
}

async function picture(page, name) {
  await page.screenshot({ path: join(folder, `${name}.png`) });
  console.log(name);
}

async function inspect(page) {
  const token = page.locator(".reply-text .token[data-origin=drafted]").nth(4);
  await token.hover();
  await page.waitForSelector("#tip:not([hidden])");
}

await mkdir(folder, { recursive: true });
const browser = await openBrowser();
for (const theme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, colorScheme: theme });
  const page = await context.newPage();
  await page.goto(url);
  await ask(page);
  await page.waitForTimeout(1500);
  await inspect(page);
  await picture(page, `page-${theme}`);
  if (theme === "light") {
    await page.goto(`${url}#compare`);
    await page.fill("#compare-prompt", question);
    await page.click("#panel-toggle");
    await page.fill("#compare-seed", "7");
    await page.click("#compare-run");
    await page.waitForSelector(".verdict", { timeout: 300_000 });
    await page.locator("#compare-view").evaluate((view) => view.scrollTo(0, 0));
    await picture(page, "page-compare");
  }
  await context.close();
}
const context = await browser.newContext({ viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, colorScheme: "light", isMobile: true, hasTouch: true });
const page = await context.newPage();
await page.goto(url);
await ask(page);
await picture(page, "page-phone");
await context.close();
await browser.close();
