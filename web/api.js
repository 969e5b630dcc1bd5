import { readEvents } from "./events.js";
import { apiKey } from "./settings.js";

/** An error that a person is shown: in the words of the server where it has some. `status` is 0 without an answer. */
export class ServerError extends Error {
  constructor(message, status = 0, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

function wordsOf(body) {
  try {
    return JSON.parse(body).error.message || body;
  } catch {
    return body;
  }
}

async function send(path, body, signal) {
  const headers = {};
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server cannot be reached.");
  }
  if (response.ok) return response;
  const words = wordsOf(await response.text().catch(() => ""));
  throw new ServerError(words || `The server answered ${response.status} without saying why.`, response.status,
    response.headers.get("Retry-After"));
}

async function readJson(path, signal) {
  const response = await send(path, null, signal);
  return response.json();
}

/** The names of the models that the server offers. */
export async function listModels() {
  return (await readJson("v1/models")).data.map((model) => model.id);
}

/** What the server's models are doing, as GET /v1/verbatim/stats tells it: a list with an entry per model. */
export async function readStats(signal) {
  return (await readJson("v1/verbatim/stats", signal)).models;
}

/**
 * Asks for a reply and yields the parts of its stream: objects with some of `text`, `tokens` (their origins), `finish`
 * (why it ended), `usage` and `summary` (what the speculation did). Throws ServerError, also when the stream ends
 * before the reply is complete, and an AbortError when `signal` stops it.
 */
export async function* streamReply(question, signal) {
  const response = await send("v1/chat/completions", {
    ...question, stream: true, stream_options: { include_usage: true },
  }, signal);
  const lost = "The connection was lost before the reply was complete.";
  try {
    for await (const data of readEvents(response)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ServerError(chunk.error.message || lost, response.status);
      const choice = chunk.choices?.[0];
      const extension = chunk.verbatim ?? {};
      const summary = "passes" in extension || "guarantee" in extension ? extension : null;
      yield {
        text: choice?.delta?.content ?? "", tokens: extension.tokens ?? null, finish: choice?.finish_reason ?? null,
        usage: chunk.usage ?? null, summary,
      };
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ServerError) throw error;
    throw new ServerError(error instanceof SyntaxError ? "The server sent an event that is not JSON." : lost);
  }
  throw new ServerError(lost);
}
