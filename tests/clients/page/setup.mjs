import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBrowser } from "./browser.mjs";
import { MockServer } from "./mock-server.mjs";

/** The address of a running server to test, or undefined: then the tests bring a mock server. */
const address = process.env.VERBATIM_PAGE_URL;
/** Whether only the tests run that need a server which misbehaves on request; the others run against a real one. */
const mockOnes = Boolean(process.env.VERBATIM_PAGE_MOCK_ONLY);
/** The longest wait for a reply, in milliseconds. */
const patience = address ? 300_000 : 20_000;

let browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

/**
 * A test that opens the page in a profile of its own and calls `body` with { page, mock, url }. Afterwards the page must
 * have asked no other host for anything and, but for the messages that `expected` matches, have written no error to the
 * console. `options` are those of a context of playwright; `mock: true` among them leaves the test out where the server
 * is a real one, `behaviour` is how the mock server behaves from the start, and `interrupted: true` says that the test
 * stops a reply, which then takes many seconds of a real server too, so that it is still being written on a busy machine.
 */
export function pageTest(name, options, body) {
  const { mock: mockOnly = false, expected = null, behaviour = {}, path = "", interrupted = false, ...context } = options;
  const skip = (mockOnly && address && "needs the mock server") || (!mockOnly && mockOnes && "runs against a real server");
  test(name, { skip, timeout: 600_000 }, async () => {
    const mock = address ? null : await new MockServer().start();
    if (mock) Object.assign(mock.behaviour, behaviour);
    const url = address ?? mock.url;
    const profile = await browser.newContext({ viewport: { width: 1200, height: 800 }, permissions: ["clipboard-read", "clipboard-write"], ...context });
    try {
      const page = await profile.newPage();
      page.setDefaultTimeout(patience);
      const errors = [];
      const hosts = new Set();
      page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
      page.on("pageerror", (error) => errors.push(String(error)));
      page.on("request", (request) => hosts.add(new URL(request.url()).host));
      const slow = behaviour.stepTime >= 15;
      if (address && slow) await page.addInitScript(slowReplies, { stepTime: behaviour.stepTime, interrupted });
      await page.goto(new URL(path, url).href);
      await page.waitForSelector("#using-words:not(:empty)", { state: "attached" });
      if (address) await page.evaluate((most) => import("/settings.js").then(({ change }) => change({ max_tokens: most })), interrupted ? "700" : slow ? "100" : "48");
      await body({ page, mock, url });
      assert.deepEqual(errors.filter((text) => !expected?.test(text)), [], "errors in the console");
      assert.deepEqual([...hosts], [new URL(url).host], "hosts that were asked");
    } finally {
      await profile.close();
      await mock?.stop();
    }
  });
}

/**
 * Runs in the page: makes the replies of a real server last, as the mock server's `stepTime` does, so that a test can act
 * while one is written however fast the machine is. Each event of a stream waits for `stepTime` milliseconds, or, where a
 * reply will be `interrupted`, a quarter of a second until one is, and the token that ends a reply of models/target is
 * ruled out.
 */
function slowReplies({ stepTime, interrupted }) {
  const fetchAtOnce = window.fetch;
  let wait = interrupted ? 250 : stepTime;
  window.fetch = async (address, options) => {
    if (!String(address).includes("/chat/completions")) return fetchAtOnce(address, options);
    if (interrupted) options.signal?.addEventListener("abort", () => { wait = 0; });
    const endOfText = "2";
    const body = JSON.stringify({ ...JSON.parse(options.body), logit_bias: { [endOfText]: -100 } });
    const response = await fetchAtOnce(address, { ...options, body });
    const events = new TransformStream({
      rest: "",
      start(controller) {
        // The server may have sent all before, and then nothing else would end here.
        if (interrupted) options.signal?.addEventListener("abort", () => controller.error(options.signal.reason));
      },
      async transform(text, controller) {
        const parts = (this.rest + text).split("\n\n");
        this.rest = parts.pop();
        for (const event of parts) {
          await new Promise((done) => setTimeout(done, wait));
          controller.enqueue(`${event}\n\n`);
        }
      },
      flush(controller) {
        if (this.rest) controller.enqueue(this.rest);
      },
    });
    const slowed = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(events).pipeThrough(new TextEncoderStream());
    return new Response(slowed, response);
  };
}

/** Waits until the last reply is complete. */
export async function replied(page) {
  await page.waitForSelector(".turn.model:last-child:not([aria-busy])");
}

/** Sends a message by the keyboard and waits for the whole reply. */
export async function ask(page, message) {
  await page.fill("#prompt", message);
  await page.press("#prompt", "Enter");
  await replied(page);
}

/** The text of the last reply, as its copy button gives it. */
export async function copied(page) {
  await page.click(".turn.model:last-child [title='Copy the reply']");
  await page.waitForFunction(() => document.getElementById("announcer").textContent === "Copied.");
  return page.evaluate(() => navigator.clipboard.readText());
}

/** Has the page's next requests for replies answered with the given chunks of a stream. */
export async function answerWith(page, chunks) {
  const body = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
}

/** Has the page's next requests for replies refused. */
export async function refuseWith(page, status, message, headers = {}) {
  await page.route("**/v1/chat/completions", (route) => route.fulfill({
    status, headers, contentType: "application/json", body: JSON.stringify({ error: { message, type: "invalid_request_error" } }),
  }));
}

/** A chunk of a stream: some text and its tokens. */
export function chunkOf(content, tokens = []) {
  return { choices: [{ index: 0, delta: { content }, finish_reason: null }], verbatim: { tokens } };
}

/** A token as a server describes it. */
export function tokenOf(bytes, origin, level = "", confidence = 0) {
  return { id: 7, bytes, origin, level, confidence };
}
