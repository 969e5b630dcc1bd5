import assert from "node:assert/strict";
import { ask, copied, pageTest, replied } from "./setup.mjs";

const story = "Tell a short story about a lighthouse.";

pageTest("a message is sent and the reply streams in", { behaviour: { stepTime: 15 } }, async ({ page }) => {
  await page.fill("#prompt", story);
  await page.click("#send");
  await page.waitForSelector(".turn.model[aria-busy] .token");
  const early = (await page.textContent(".turn.model .reply-text")).length;
  await replied(page);
  const late = (await page.textContent(".turn.model .reply-text")).length;
  assert.ok(late > early, `${early} characters, then ${late}`);
  assert.equal(await page.textContent(".turn.user .said"), story);
  assert.match(await page.textContent(".turn.model .facts"), /tokens\/s/);
  assert.equal(await page.inputValue("#prompt"), "");
});

pageTest("the text in the page is the text that the server sent, to the byte", { mock: true }, async ({ page }) => {
  const text = "Two  spaces, 🌍 in two tokens, ä, “quotes”, tab\tand\n\n\nthree newlines.";
  await ask(page, text);
  assert.equal(await copied(page), `You said: ${text}\n`);
});

pageTest("stop ends the reply, keeps its text, and the server notices", { interrupted: true, behaviour: { stepTime: 40 } }, async ({ page, mock }) => {
  await page.fill("#prompt", story);
  await page.press("#prompt", "Enter");
  await page.waitForSelector(".turn.model .token");
  await page.click("#send");
  await replied(page);
  assert.match(await page.textContent(".turn.model .after"), /Stopped\./);
  assert.notEqual(await page.textContent(".turn.model .reply-text"), "");
  if (mock) {
    for (let tries = 0; tries < 50 && mock.cancelled === 0; tries += 1) await page.waitForTimeout(50);
    assert.equal(mock.cancelled, 1);
  }
  await ask(page, "planets");
  if (mock) assert.deepEqual(mock.requests.at(-1).messages.map(({ role }) => role), ["user", "assistant", "user"]);
});

pageTest("regenerating replaces the last reply and asks the same", {}, async ({ page, mock }) => {
  await ask(page, "planets");
  await page.click("[title='Regenerate the reply']");
  await replied(page);
  assert.equal(await page.locator(".turn").count(), 2);
  if (mock) assert.deepEqual(mock.requests[1].messages, mock.requests[0].messages);
});

pageTest("editing the last message replaces it and what followed", {}, async ({ page, mock }) => {
  await ask(page, "planets");
  await ask(page, "fibonacci");
  assert.equal(await page.locator("[title='Edit the message']:visible").count(), 1);
  await page.click("[title='Edit the message']:visible");
  await page.fill(".edit-form textarea", story);
  await page.press(".edit-form textarea", "Enter");
  await replied(page);
  assert.deepEqual(await page.locator(".said").allTextContents(), ["planets", story]);
  if (mock) assert.deepEqual(mock.requests.at(-1).messages.map(({ content }) => content).filter((_, at) => at !== 1), ["planets", story]);
});

pageTest("an edit that is cancelled changes nothing", {}, async ({ page }) => {
  await ask(page, "planets");
  await page.press("#prompt", "ArrowUp");
  await page.fill(".edit-form textarea", "something else");
  await page.press(".edit-form textarea", "Escape");
  assert.equal(await page.textContent(".said"), "planets");
});

pageTest("clearing forgets the conversation, also while a reply is written", { interrupted: true, behaviour: { stepTime: 40 } }, async ({ page, mock }) => {
  await page.fill("#prompt", story);
  await page.press("#prompt", "Enter");
  await page.waitForSelector(".turn.model .token");
  await page.click("#clear");
  assert.equal(await page.locator(".turn").count(), 0);
  await ask(page, "planets");
  if (mock) assert.equal(mock.requests.at(-1).messages.length, 1);
});

pageTest("the live panel follows the server", {}, async ({ page }) => {
  await page.waitForSelector("#speed-now");
  await ask(page, story);
  await page.waitForSelector("#panel .histogram .bar");
  assert.match(await page.textContent("#panel"), /of [\d,]+ drafted tokens/);
  await page.click("#panel-toggle");
  await page.waitForTimeout(200);
  let polls = 0;
  page.on("request", (request) => { polls += request.url().includes("stats") ? 1 : 0; });
  await page.waitForTimeout(1500);
  assert.equal(polls, 0, "a closed panel asks for nothing");
});

pageTest("what was written of a reply is never taken out of the page again, however long it gets", { mock: true, behaviour: { stepTime: 0, reply: "word ".repeat(6000) } }, async ({ page }) => {
  await page.evaluate(() => {
    window.changed = [];
    new MutationObserver((records) => window.changed.push(records.reduce((sum, r) => sum + r.removedNodes.length, 0)))
      .observe(document.getElementById("turns"), { subtree: true, childList: true });
  });
  await ask(page, "long");
  const removed = await page.evaluate(() => window.changed.reduce((sum, value) => sum + value, 0));
  assert.ok(removed < 10, `${removed} nodes were taken out of the page again`);
  assert.equal((await page.textContent(".turn.model .reply-text")).length, 30000);
});

pageTest("what the recipe promises is said in words", { mock: true }, async ({ page }) => {
  await ask(page, "planets");
  assert.match(await page.textContent(".summary details"), /Lossless: the bytes of plain decoding\./);
});
