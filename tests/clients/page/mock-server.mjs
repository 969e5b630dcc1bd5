// A server that answers the page as Verbatim's does, without a model: for tests of the page alone, and for work on it.
// `node mock-server.mjs [PORT]` starts it.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { randomNumbers, replyTo, tokensOf } from "./replies.mjs";

const web = fileURLToPath(new URL("../../../web/", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const policy = {
  "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
};
const levels = ["self@mxfp4-w4a8", "ngram"];

async function serveFile(path, response) {
  const name = normalize(path === "/" ? "/index.html" : path);
  const body = await readFile(join(web, name)).catch(() => null);
  if (!body) return fail(response, 404, `There is no ${path}.`);
  response.writeHead(200, { "Content-Type": types[extname(name)], ...policy });
  response.end(body);
}

function fail(response, status, message, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }));
}

function sendJson(response, value) {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

/** Groups tokens into the steps of a decoder: lists of { bytes, origin, level, confidence }, and how many were drafted. */
function stepsOf(tokens, speculative, random) {
  const steps = [];
  for (let at = 0; at < tokens.length;) {
    const kept = speculative ? Math.min(Math.floor(random() * random() * 8), tokens.length - at - 1) : 0;
    const step = tokens.slice(at, at + kept).map((bytes) => {
      const level = levels[random() < 0.3 ? 1 : 0];
      return { bytes, origin: "drafted", level, confidence: 1 - 0.7 * random() * random() };
    });
    const corrected = speculative && random() < 0.7;
    step.push(corrected ? { bytes: tokens[at + kept], origin: "corrected", level: levels[0], confidence: 0.2 + 0.5 * random() }
      : { bytes: tokens[at + kept], origin: "plain", level: "", confidence: 0 });
    steps.push({ tokens: step, kept, drafted: kept + (corrected ? 1 + Math.floor(random() * 2) : 0) });
    at += step.length;
  }
  return steps;
}

/** A mock server. `behaviour` may be changed at any time: it holds for requests that come later. */
export class MockServer {
  behaviour = {
    key: "", // the API key that is asked for
    refuse: null, // { status, message, headers }, for the next request of a reply alone
    reply: null, // the text of replies
    loseAfter: Infinity, // steps after which the connection is cut
    errorAfter: Infinity, // steps after which the stream tells of an error
    differ: false, // whether speculative replies have other bytes
    stepTime: Number(process.env.MOCK_STEP ?? 5), // milliseconds per pass of the model; a pass with drafts takes a third more
  };
  requests = []; // the bodies of requests for replies
  cancelled = 0; // replies whose client left
  #counters = { drafted: 0, accepted: 0, lengths: [], tokens: 0 };
  #running = 0;
  #speed = 0;

  async start(port = 0) {
    this.server = createServer((request, response) => this.#handle(request, response).catch((error) => response.destroy(error)));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #handle(request, response) {
    const path = new URL(request.url, "http://mock").pathname;
    if (!path.startsWith("/v1/")) return serveFile(path, response);
    const { key } = this.behaviour;
    if (key && request.headers.authorization !== `Bearer ${key}`) {
      return fail(response, 401, "The request shows no API key that this server knows: send one in the header Authorization.");
    }
    if (path === "/v1/models") return sendJson(response, { object: "list", data: [{ id: "target", object: "model" }, { id: "small", object: "model" }] });
    if (path === "/v1/verbatim/stats") return sendJson(response, { models: this.#stats() });
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text);
    this.requests.push(body);
    const { refuse } = this.behaviour;
    if (refuse) {
      this.behaviour.refuse = null;
      return fail(response, refuse.status, refuse.message, refuse.headers);
    }
    return this.#stream(body, response);
  }

  #stats() {
    const { drafted, accepted, lengths, tokens } = this.#counters;
    const common = { recipes: ["auto", "plain", "nested", "speq"], waiting: 0 };
    return [
      {
        name: "target", loaded: true, recipe: "auto", ...common, running: this.#running, tokens_per_second: this.#running ? this.#speed : 0,
        plain_tokens_per_second: 1000 / this.behaviour.stepTime, drafted, accepted, lengths, cache_bytes: 512e6, cache_bytes_taken: 2e6 + tokens * 49152,
      },
      { name: "small", loaded: false, recipe: "auto", ...common, running: 0, tokens_per_second: 0, plain_tokens_per_second: null,
        drafted: 0, accepted: 0, lengths: [], cache_bytes: 0, cache_bytes_taken: 0 },
    ];
  }

  async #stream(body, response) {
    const { behaviour } = this;
    const speculative = body.verbatim?.speculation !== false && body.verbatim?.recipe !== "plain";
    const message = body.messages.at(-1).content;
    let text = behaviour.reply ?? replyTo(message);
    if (behaviour.differ && speculative) text = `${text.slice(0, 40)}~${text.slice(41)}`;
    const seed = body.seed ?? Math.floor(Math.random() * 2 ** 31);
    const steps = stepsOf(tokensOf(text).slice(0, body.max_tokens ?? Infinity), speculative, randomNumbers(seed));
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const send = (value) => response.write(`data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`);
    const chunk = (delta, more = {}) => send({ id: "mock", object: "chat.completion.chunk", model: body.model ?? "target",
      choices: [{ index: 0, delta, finish_reason: null }], ...more });
    let left = false;
    response.on("close", () => { left = !response.writableFinished; });
    this.#running += 1;
    const totals = { drafted: 0, accepted: 0, lengths: [], tokens: 0 };
    const decoder = new TextDecoder();
    const start = performance.now();
    chunk({ role: "assistant", content: "" });
    for (const [index, step] of steps.entries()) {
      await sleep(behaviour.stepTime * (speculative ? 4 / 3 : 1));
      if (index >= behaviour.loseAfter) response.destroy();
      if (left || response.destroyed) break;
      if (index >= behaviour.errorAfter) {
        send({ error: { message: "The reply took longer than the server allows.", type: "server_error", param: null, code: null } });
        response.end();
        break;
      }
      const content = decoder.decode(Uint8Array.from(step.tokens.flatMap((token) => token.bytes)), { stream: true });
      const tokens = step.tokens.map((token, place) => ({ ...token, id: 1000 + index + place, bytes: token.bytes.length }));
      this.#count(totals, step, speculative);
      this.#speed = (1000 * totals.tokens) / (performance.now() - start);
      chunk({ content }, { verbatim: { tokens } });
    }
    this.#running -= 1;
    if (left || response.destroyed) {
      this.cancelled += 1;
      return;
    }
    if (response.writableEnded) return;
    send({ id: "mock", object: "chat.completion.chunk", choices: [{ index: 0, delta: {},
      finish_reason: totals.tokens === body.max_tokens ? "length" : "stop" }] });
    send({ id: "mock", object: "chat.completion.chunk", choices: [], usage: { prompt_tokens: 12, completion_tokens: totals.tokens },
      verbatim: this.#summary(body, seed, speculative, steps.length, totals, (performance.now() - start) / 1000) });
    send("[DONE]");
    response.end();
  }

  #count(totals, step, speculative) {
    for (const counters of speculative ? [totals, this.#counters] : [totals]) {
      counters.drafted += step.drafted;
      counters.accepted += step.kept;
      counters.tokens += step.tokens.length;
      while (counters.lengths.length <= step.kept) counters.lengths.push(0);
      counters.lengths[step.kept] += 1;
    }
  }

  #summary(body, seed, speculative, passes, totals, seconds) {
    const { drafted, accepted, lengths, tokens } = totals;
    const half = Math.round(drafted * 0.3);
    return {
      recipe: speculative ? (body.verbatim?.recipe ?? "auto") : "plain", lossless: true, guarantee: "bytes",
      seed, drafted, accepted, passes, lengths, tokens_per_second: tokens / seconds, seconds_prefill: 0.041, seconds_decode: seconds,
      levels: speculative ? [{ name: levels[0], drafted: drafted - half, accepted: accepted - Math.min(accepted, half) },
        { name: levels[1], drafted: half, accepted: Math.min(accepted, half) }] : [],
    };
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await new MockServer().start(Number(process.argv[2] ?? 8090));
  console.log(server.url);
}
