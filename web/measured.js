const lastSpeeds = new Map();

/** Remembers how fast a model decoded a reply, in tokens per second. */
export function measured(model, tokensPerSecond) {
  if (tokensPerSecond > 0) lastSpeeds.set(model, tokensPerSecond);
}

/** The speed of a model's last reply with drafts in this page, in tokens per second, or undefined. */
export function lastSpeed(model) {
  return lastSpeeds.get(model);
}
