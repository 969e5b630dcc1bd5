import assert from "node:assert/strict";
import { pageTest } from "./setup.mjs";

async function compare(page) {
  await page.fill("#compare-prompt", "Write a fibonacci function.");
  await page.click("#compare-run");
}

for (const order of ["turns", "together"]) {
  pageTest(`plain and speculative are compared, run ${order}`, { path: "#compare" }, async ({ page, mock }) => {
    await page.check(`input[name=order][value=${order}]`);
    await page.fill("#compare-seed", "11");
    await compare(page);
    await page.waitForSelector(".verdict.same");
    assert.match(await page.textContent("#verdict"), /The same bytes.*\d+ bytes.*as fast/s);
    assert.equal(await page.locator(".race .facts").count(), 2);
    const [plain, fast] = await page.locator(".race .reply-text").allTextContents();
    assert.equal(plain, fast);
    assert.equal(await page.locator(".race >> nth=0 >> .token[data-origin=drafted]").count(), 0);
    if (!mock) return;
    const [one, other] = mock.requests.toSorted((a) => (a.verbatim.speculation ? 1 : -1));
    assert.deepEqual([one.seed, one.verbatim.speculation, other.seed, other.verbatim.speculation], [11, false, 11, true]);
  });
}

pageTest("a seed is drawn and shown if none is given", { path: "#compare" }, async ({ page, mock }) => {
  await compare(page);
  await page.waitForSelector(".verdict");
  const seed = Number(await page.inputValue("#compare-seed"));
  assert.ok(Number.isInteger(seed));
  if (mock) assert.deepEqual(mock.requests.map((request) => request.seed), [seed, seed]);
});

pageTest("bytes that differ are shown loudly", { mock: true, path: "#compare", behaviour: { differ: true } }, async ({ page }) => {
  await compare(page);
  await page.waitForSelector(".verdict.different[role=alert]");
  assert.match(await page.textContent(".verdict"), /The bytes differ.*From byte 40 on.*this is a fault/s);
});

pageTest("a comparison that is stopped has no verdict", { path: "#compare", interrupted: true, behaviour: { stepTime: 40 } }, async ({ page }) => {
  await compare(page);
  await page.waitForSelector(".race .token");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#verdict .note");
  assert.equal(await page.locator(".verdict").count(), 0);
  assert.match(await page.textContent("#verdict"), /nothing to compare/);
  assert.equal(await page.isVisible("#compare-run"), true);
});
