import assert from "node:assert/strict";
import { answerWith, ask, chunkOf, pageTest, tokenOf } from "./setup.mjs";

const chunks = [
  chunkOf("One", [tokenOf(3, "plain")]),
  chunkOf(" two three", [tokenOf(4, "drafted", "ngram", 0.93), tokenOf(6, "corrected", "ngram", 0.41)]),
  chunkOf(" and **bold** `code`.", [tokenOf(4, "drafted", "self@mxfp4-w4a8", 0.2), tokenOf(9, "plain"), tokenOf(8, "plain")]),
];

pageTest("every token is tinted by its origin and the sureness of its draft", {}, async ({ page }) => {
  await answerWith(page, chunks);
  await ask(page, "tokens");
  const spans = await page.locator(".reply-text .token").evaluateAll((all) => all.map(({ textContent, dataset }) => [textContent, dataset.origin, dataset.slot, dataset.sure]));
  assert.deepEqual(spans.slice(0, 4), [
    ["One", "plain", undefined, undefined], [" two", "drafted", "0", "3"], [" three", "corrected", undefined, undefined], [" and", "drafted", "1", "0"],
  ]);
  assert.match(await page.textContent("#legend"), /ngram.*self@mxfp4-w4a8.*corrected.*plain/s);
  const look = (text) => page.locator(`.reply-text .token:text-is("${text}")`).evaluate((span) => {
    const style = getComputedStyle(span);
    return [style.textDecorationStyle, style.textDecorationLine, style.backgroundColor !== "rgba(0, 0, 0, 0)"].join(" ");
  });
  const looks = [await look("One"), await look("two"), await look("three"), await look("and")];
  assert.deepEqual(looks, ["solid none false", "solid underline true", "wavy underline true", "dotted underline true"]);
  await page.uncheck("#tint");
  assert.equal(await look("three"), "solid none false");
});

pageTest("the draft's confidence shows on hover", {}, async ({ page }) => {
  await answerWith(page, chunks);
  await ask(page, "tokens");
  await page.hover('.reply-text .token:text-is("two")');
  assert.match(await page.textContent("#tip"), /Drafted and kept.*ngram drafted it, 93 % sure/s);
  await page.hover('.reply-text .token:text-is("three")');
  assert.match(await page.textContent("#tip"), /Corrected.*41 % sure/s);
  await page.mouse.move(5, 5);
  await page.waitForSelector("#tip", { state: "hidden" });
});

pageTest("the draft's confidence shows on keyboard focus", {}, async ({ page }) => {
  await answerWith(page, chunks);
  await ask(page, "tokens");
  await page.focus(".reply-text");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent("#tip"), /Plain/);
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent("#tip"), /93 % sure/);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-describedby")), "tip");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.textContent("#tip"), /Plain/);
  await page.keyboard.press("Escape");
  assert.equal(await page.isVisible("#tip"), false);
  assert.equal(await page.evaluate(() => document.activeElement.className), "reply-text");
});

pageTest("a character in several tokens belongs to the one that completes it; text may come after its tokens", {}, async ({ page }) => {
  await answerWith(page, [
    chunkOf("a", [tokenOf(1, "plain"), tokenOf(2, "drafted", "ngram", 0.5)]),
    chunkOf("🌍", [tokenOf(2, "corrected", "ngram", 0.5)]),
    chunkOf("", [tokenOf(3, "plain")]),
    chunkOf("x", []),
    chunkOf("yz!", [tokenOf(1, "drafted", "ngram", 0.5)]),
  ]);
  await ask(page, "tokens");
  const spans = await page.locator(".reply-text .token").evaluateAll((all) => all.map(({ textContent, dataset }) => [textContent, dataset.origin]));
  assert.deepEqual(spans, [["a", "plain"], ["🌍", "corrected"], ["xyz", "plain"], ["!", "drafted"]]);
});

pageTest("what a model says never becomes markup of the page", {}, async ({ page }) => {
  const text = "<script>window.hacked = 1</script>\n<img src=x onerror=\"window.hacked = 1\">\n\n```\"><svg onload=alert(1)>\n</code><b>x</b>\n```\n" +
    "[a](javascript:alert(1)) <style>*{display:none}</style> &lt;b&gt;";
  await answerWith(page, [...text].map((character) => chunkOf(character, [tokenOf(1, "drafted", "<i>level</i>", 0.5)])));
  await ask(page, "<b>hostile</b>");
  const shown = await page.textContent(".turn.model .reply-text");
  for (const piece of ["<script>window.hacked = 1</script>", "<img src=x onerror=", "</code><b>x</b>", "[a](javascript:alert(1))", "&lt;b&gt;"]) {
    assert.ok(shown.includes(piece), piece);
  }
  assert.equal(await page.locator(".turn :is(script, img, a, b, style, i), .turn svg:not(.icon, .histogram)").count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.textContent(".said"), "<b>hostile</b>");
  await page.hover(".reply-text .token >> nth=0");
  assert.match(await page.textContent("#tip"), /<i>level<\/i>/);
});
