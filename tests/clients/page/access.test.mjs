import assert from "node:assert/strict";
import { ask, pageTest, replied } from "./setup.mjs";

const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.title || document.activeElement.className || document.activeElement.textContent);

/** The texts of the page whose contrast with their ground is below 4.5, or 3 where they are large. */
function faint(page) {
  return page.evaluate(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const mix = (over, colour) => {
      canvas.fillStyle = `rgb(${over.join(" ")})`;
      canvas.fillRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
      const [r, g, b] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    let checked = 0;
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (walker.currentNode.data.trim() === "" || !node.checkVisibility() || node.closest(".visually-hidden, .skip, option, :disabled")) continue;
      const around = [];
      for (let each = node; each; each = each.parentElement) around.unshift(each);
      const ground = around.reduce((colour, each) => mix(colour, getComputedStyle(each).backgroundColor), [255, 255, 255]);
      const style = getComputedStyle(node);
      const ink = mix(ground, node.namespaceURI.endsWith("svg") ? style.fill : style.color);
      const [high, low] = [light(ink), light(ground)].toSorted((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      const large = parseFloat(style.fontSize) >= 24;
      checked += 1;
      if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)}: ${walker.currentNode.data.slice(0, 40)}`);
    }
    return { found, checked };
  });
}

for (const colorScheme of ["light", "dark"]) {
  pageTest(`all text has enough contrast, ${colorScheme}`, { colorScheme, expected: /Failed to load/ }, async ({ page }) => {
    assert.equal(await page.getAttribute("html", "data-theme"), colorScheme);
    const check = async () => {
      const { found, checked } = await faint(page);
      assert.deepEqual(found, []);
      assert.ok(checked > 20, `${checked} texts`);
    };
    await check();
    await ask(page, "fibonacci");
    await page.click(".summary summary");
    await page.hover(".reply-text .token >> nth=1");
    await page.waitForTimeout(1200);
    await check();
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ status: 401, body: '{"error": {"message": "No."}}' }));
    await ask(page, "planets");
    await check();
    await page.unroute("**/v1/chat/completions");
    await page.click("nav a >> nth=1");
    await page.click("#compare-run");
    await page.waitForSelector(".verdict");
    await check();
    await page.click("#settings-open");
    await check();
  });
}

pageTest("the theme follows the system until it is chosen", { colorScheme: "light" }, async ({ page }) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const lightGround = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForSelector("html[data-theme=dark]");
  assert.notEqual(await ground(), lightGround);
  await page.click("#theme-toggle");
  assert.equal(await ground(), lightGround);
  await page.reload();
  assert.equal(await ground(), lightGround);
});

pageTest("everything can be done with the keyboard alone", { interrupted: true, behaviour: { stepTime: 30 } }, async ({ page }) => {
  assert.equal(await focused(page), "prompt");
  await page.keyboard.type("planets");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("please");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".turn.model .token");
  assert.equal(await page.textContent(".said"), "planets\nplease");
  await page.keyboard.press("Escape");
  await replied(page);
  assert.match(await page.textContent(".turn.model .after"), /Stopped/);
  assert.equal(await focused(page), "prompt");
  await page.keyboard.press("Shift+Tab");
  assert.equal(await focused(page), "Regenerate the reply");
  await page.keyboard.press("Enter");
  await replied(page);
  await page.focus("#prompt");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("fibonacci");
  await page.keyboard.press("Enter");
  await replied(page);
  assert.deepEqual(await page.locator(".said").allTextContents(), ["fibonacci"]);
  assert.equal(await focused(page), "prompt");

  await page.evaluate(() => document.activeElement.blur());
  const order = [];
  await page.evaluate(() => { document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex"); });
  for (let presses = 0; presses < 8; presses += 1) {
    await page.keyboard.press("Tab");
    order.push(await focused(page));
    const visible = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== "none" || document.activeElement.matches(".skip"));
    assert.ok(visible, `the focus is seen on ${order.at(-1)}`);
  }
  assert.deepEqual(order, ["skip", "Chat", "Side by side", "panel-toggle", "theme-toggle", "settings-open", "tint", "Copy the message"]);

  await page.focus("#settings-open");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.getElementById("settings").contains(document.activeElement)), true);
  await page.keyboard.press("Escape");
  assert.equal(await focused(page), "settings-open");
});

pageTest("the skip link leads to the field of the view", {}, async ({ page }) => {
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "prompt");
  await page.click("nav a >> nth=1");
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await focused(page), "compare-prompt");
});

pageTest("a reply is announced when it is complete, not token by token", {}, async ({ page }) => {
  await page.evaluate(() => {
    window.said = [];
    new MutationObserver(() => window.said.push(document.getElementById("announcer").textContent))
      .observe(document.getElementById("announcer"), { childList: true, characterData: true, subtree: true });
  });
  await ask(page, "planets");
  await page.waitForFunction(() => window.said.length >= 2);
  const said = await page.evaluate(() => window.said);
  assert.equal(said.length, 2);
  assert.match(said[1], /^The reply: ./);
  assert.equal(await page.locator("[aria-live]").count(), 1);
});

pageTest("every control has a name", {}, async ({ page }) => {
  await ask(page, "fibonacci");
  await page.click("#settings-open");
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, a")]
    .filter((node) => !node.textContent.trim() && !node.ariaLabel && !(node.labels?.length > 0)).map((node) => node.outerHTML));
  assert.deepEqual(nameless, []);
});

pageTest("nothing moves for readers who ask for less motion", { reducedMotion: "reduce", behaviour: { stepTime: 200 } }, async ({ page }) => {
  await page.fill("#prompt", "planets");
  await page.press("#prompt", "Enter");
  await page.waitForSelector(".turn.model");
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  await replied(page);
});

pageTest("a phone needs no scrolling to the side", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }, async ({ page }) => {
  const fits = async (what) => {
    const wide = await page.evaluate(() => [...document.querySelectorAll("body, main, #conversation, #compare-view, #panel, .settings-body")]
      .filter((node) => node.checkVisibility() && node.scrollWidth > node.clientWidth).map((node) => node.id || node.className || node.localName));
    assert.deepEqual(wide, [], what);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360, what);
  };
  await fits("welcome");
  await ask(page, `fibonacci ${"x".repeat(200)}`);
  await page.click(".summary summary");
  await fits("reply");
  await page.click("#panel-toggle");
  await page.waitForSelector("#speed-now");
  await fits("panel");
  await page.click("#panel-close");
  await page.click("#settings-open");
  await fits("settings");
  await page.keyboard.press("Escape");
  await page.click("nav a >> nth=1");
  await page.click("#compare-run");
  await page.waitForSelector(".verdict");
  await fits("comparison");
});

pageTest("the page works under its policy: no inline script or style", { mock: true }, async ({ page, url }) => {
  const response = await page.request.get(url);
  assert.match(response.headers()["content-security-policy"], /default-src 'self'/);
  const html = await response.text();
  assert.doesNotMatch(html, / style=| on\w+=|<style|<script>/);
});
