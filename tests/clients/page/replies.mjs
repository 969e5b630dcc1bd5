/** What the mock server says: a text by words that the last message contains. */
const texts = [
  ["fibonacci", `Here is a function that returns the **n-th Fibonacci number**, with \`fibonacci(0) == 0\`:

\`\`\`python
def fibonacci(n: int) -> int:
    """Returns the n-th Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
\`\`\`

It takes a number of steps that grows with n, and two variables:

1. \`a\` holds the current number,
2. \`b\` holds the next one.

For example, \`fibonacci(10)\` is **55**.
`],
  ["planets", `The planets, from the sun outwards:

- **Mercury**, the smallest
- **Venus**
- **Earth** 🌍
- **Mars**
- **Jupiter**, the largest
- **Saturn**
- **Uranus**
- **Neptune**
`],
  ["lighthouse", `The lighthouse at Grey Point had been dark for eleven years when the keeper’s daughter came home. She climbed the stairs with a lantern in one hand and her father’s logbook in the other, and read the last entry aloud to the gulls: “Fog tonight. All well.”

She cleaned the lens until it held the whole evening sky. Then she lit the lamp, and far out on the water a small boat turned, as if it had been waiting for someone to remember the way.
`],
];

/** The reply to a message. */
export function replyTo(message) {
  const words = message.toLowerCase();
  for (const [word, text] of texts) if (words.includes(word)) return text;
  return `You said: ${message}\n`;
}

/** Cuts a text into pieces as a tokenizer might, as lists of bytes: characters of four bytes fall apart. */
export function tokensOf(text) {
  const pieces = text.match(/ ?[\p{L}\p{N}_]{1,7}|\n+| +|./gsu) ?? [];
  return pieces.flatMap((piece) => {
    const bytes = [...Buffer.from(piece)];
    return bytes.length === 4 && bytes[0] >= 0xf0 ? [bytes.slice(0, 2), bytes.slice(2)] : [bytes];
  });
}

/** A generator of numbers from 0 to 1 that a seed decides. */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
