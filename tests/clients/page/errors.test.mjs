import assert from "node:assert/strict";
import { ask, pageTest, refuseWith, replied } from "./setup.mjs";

const status = /Failed to load resource/;

pageTest("a wrong key is told in the server's words and leads to the settings", { expected: status }, async ({ page }) => {
  await refuseWith(page, 401, "The key <b>abc</b> is not known here.");
  await ask(page, "planets");
  assert.match(await page.textContent(".problem"), /The key <b>abc<\/b> is not known here\./);
  await page.click(".problem >> text=Enter an API key");
  assert.equal(await page.evaluate(() => document.activeElement.id), "setting-key");
});

pageTest("a key opens the server, is sent to it and stays in the tab", { mock: true, behaviour: { key: "sesame" }, expected: status }, async ({ page, url }) => {
  await ask(page, "planets");
  assert.match(await page.textContent(".problem"), /no API key/);
  await page.click(".problem >> text=Enter an API key");
  await page.fill("#setting-key", "sesame");
  await page.press("#setting-key", "Escape");
  await page.click(".problem >> text=Try again");
  await replied(page);
  assert.match(await page.textContent(".turn.model .reply-text"), /Mercury/);
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("sesame")), false);
  await page.reload();
  await ask(page, "planets");
  assert.equal(await page.locator(".problem").count(), 0);
  const other = await page.context().newPage();
  await other.goto(url);
  await ask(other, "planets");
  assert.equal(await other.locator(".problem").count(), 1);
});

pageTest("a full queue says when to try again", { expected: status }, async ({ page }) => {
  await refuseWith(page, 429, "256 requests wait already.", { "Retry-After": "3" });
  await ask(page, "planets");
  assert.match(await page.textContent(".problem"), /256 requests wait already\..*wait 3 s/s);
  await page.unroute("**/v1/chat/completions");
  await page.click(".problem >> text=Try again");
  await replied(page);
  assert.equal(await page.locator(".problem").count(), 0);
  assert.notEqual(await page.textContent(".turn.model .reply-text"), "");
});

pageTest("a connection that is lost keeps the text and says so", { mock: true, behaviour: { loseAfter: 12 }, expected: /ERR_|Failed to load/ }, async ({ page }) => {
  await ask(page, "fibonacci");
  assert.match(await page.textContent(".problem"), /connection was lost/);
  assert.match(await page.textContent(".turn.model .reply-text"), /Here is/);
});

pageTest("an error within a stream is told in the server's words", { mock: true, behaviour: { errorAfter: 12 } }, async ({ page }) => {
  await ask(page, "fibonacci");
  assert.match(await page.textContent(".problem"), /longer than the server allows/);
});

pageTest("a server that is gone is told", { mock: true, expected: /ERR_|Failed to load/ }, async ({ page, mock }) => {
  await page.waitForSelector("#speed-now");
  await mock.stop();
  await ask(page, "planets");
  assert.match(await page.textContent(".problem"), /cannot be reached/);
  await page.waitForSelector("#panel-body >> text=cannot be reached");
  await mock.start();
});

pageTest("a message that was never answered is not sent again with the next", { mock: true, expected: status }, async ({ page, mock }) => {
  mock.behaviour.refuse = { status: 400, message: "No." };
  await ask(page, "first");
  await ask(page, "second");
  assert.deepEqual(mock.requests.at(-1).messages, [{ role: "user", content: "second" }]);
});
