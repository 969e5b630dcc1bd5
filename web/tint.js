import { element } from "./dom.js";

const slots = new Map();
const listeners = new Set();
const slotCount = 3;
const tokens = new WeakMap();

/** The look of a level of drafting, 0 to 2: levels get them in the order in which they are first seen. */
function slotOf(level) {
  if (!slots.has(level)) {
    slots.set(level, slots.size % slotCount);
    for (const listener of listeners) listener(slots);
  }
  return slots.get(level);
}

/** Calls a function with the looks of the levels, a map by name, now and whenever a level is seen first. */
export function followLevels(listener) {
  listeners.add(listener);
  listener(slots);
}

/** The strength of a tint, 0 to 3: the surer the draft, the stronger. */
function strengthOf(confidence) {
  if (confidence >= 0.9) return 3;
  if (confidence >= 0.7) return 2;
  return confidence >= 0.4 ? 1 : 0;
}

/** Makes the piece of text of a token, marked with the token's origin. `token` is null if the origin is unknown. */
export function tokenSpan(text, token) {
  const span = element("span", { text });
  if (!token) return span;
  span.className = "token";
  span.dataset.origin = token.origin;
  if (text.trim() === "") span.dataset.blank = "";
  if (token.origin === "drafted") {
    span.dataset.slot = slotOf(token.level ?? "a level");
    span.dataset.sure = strengthOf(token.confidence ?? 0);
  }
  tokens.set(span, token);
  return span;
}

/** The token that a piece of text belongs to, or undefined. */
export function tokenOf(span) {
  return tokens.get(span);
}
