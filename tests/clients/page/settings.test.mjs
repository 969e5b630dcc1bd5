import assert from "node:assert/strict";
import { ask, pageTest } from "./setup.mjs";

pageTest("settings are sent, and remembered over a reload", { mock: true }, async ({ page, mock }) => {
  await page.click("#settings-open");
  await page.waitForSelector("#setting-recipe option[value=nested]", { state: "attached" });
  await page.selectOption("#setting-model", "small");
  await page.selectOption("#setting-recipe", "nested");
  await page.uncheck("[data-setting=speculation]");
  for (const [name, value] of Object.entries({ temperature: "0.7", top_p: "0.9", seed: "42", max_tokens: "33", system: "Be brief." })) {
    await page.fill(`[data-setting=${name}]`, value);
  }
  await page.click("text=Done");
  await page.reload();
  await ask(page, "planets");
  const { messages, verbatim, ...fields } = mock.requests.at(-1);
  assert.deepEqual(fields, { model: "small", temperature: 0.7, top_p: 0.9, seed: 42, max_tokens: 33, stream: true, stream_options: { include_usage: true } });
  assert.deepEqual(verbatim, { origins: true, recipe: "nested", speculation: false });
  assert.deepEqual(messages[0], { role: "system", content: "Be brief." });
  assert.match(await page.textContent("#using-words"), /small · no speculation · temperature 0\.7 · seed 42/);
  await page.click("#using");
  await page.click("#settings-reset");
  await page.click("text=Done");
  await ask(page, "planets");
  assert.equal(mock.requests.at(-1).model, "target");
  assert.deepEqual(Object.keys(mock.requests.at(-1)).toSorted(), ["messages", "model", "stream", "stream_options", "verbatim"]);
});

pageTest("a setting out of range is not taken", {}, async ({ page }) => {
  await page.click("#settings-open");
  await page.fill("[data-setting=temperature]", "9");
  assert.equal(await page.evaluate(() => import("/settings.js").then(({ settings }) => settings().temperature)), "");
});

pageTest("stored settings that make no sense are passed over", {}, async ({ page }) => {
  await page.evaluate(() => localStorage.setItem("verbatim.settings", '{"temperature": {"a": 1}, "tint": "yes", "theme": "dark", "other": 1}'));
  await page.reload();
  await page.waitForSelector("#using-words:not(:empty)");
  assert.equal(await page.isChecked("#tint"), true);
  assert.equal(await page.getAttribute("html", "data-theme"), "dark");
  await page.evaluate(() => localStorage.setItem("verbatim.settings", "{"));
  await page.reload();
  await page.waitForSelector("#using-words:not(:empty)");
});

pageTest("Markdown can be shown as it was written", {}, async ({ page, mock }) => {
  await page.evaluate(() => import("/settings.js").then(({ change }) => change({ markdown: false })));
  await ask(page, "fibonacci");
  assert.equal(await page.locator(".reply-text > p.as-is").count(), 1);
  if (mock) assert.match(await page.textContent(".reply-text"), /```python\ndef fibonacci/);
});

pageTest("a browser that keeps nothing still has a key, as long as the page", {}, async ({ page }) => {
  await page.addInitScript(() => {
    for (const name of ["sessionStorage", "localStorage"]) {
      Object.defineProperty(window, name, { get() { throw new DOMException("The page may keep nothing.", "SecurityError"); } });
    }
  });
  await page.reload();
  await page.waitForSelector("#using-words:not(:empty)", { state: "attached" });
  const keys = await page.evaluate(() => import("/settings.js").then(({ apiKey, setApiKey }) => {
    const seen = [apiKey()];
    setApiKey("a-key");
    seen.push(apiKey());
    setApiKey("");
    return [...seen, apiKey()];
  }));
  assert.deepEqual(keys, ["", "a-key", ""]);
});
