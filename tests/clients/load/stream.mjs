// One streamed completion, timed chunk by chunk, over a connection of its own.
import http from 'node:http';

/**
 * Asks for a completion and reads its stream. `leaveAfter` closes the connection after so many chunks; 0 closes it as
 * soon as the request is sent. `onText` is called with every piece of text; where it returns true, the connection is
 * closed. Resolves to { status, text, finish, first, gaps, left }: the times are in milliseconds.
 */
export function streamCompletion(base, request, { leaveAfter = Infinity, onText = () => false, agent } = {}) {
  const url = new URL('/v1/completions', base);
  const body = JSON.stringify({ ...request, stream: true });
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const answer = { status: 0, text: '', finish: null, first: null, gaps: [], left: false };
    const sent = http.request(url, {
      method: 'POST', agent,
      headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
    });
    const leave = () => {
      answer.left = true;
      sent.destroy();
      resolve(answer);
    };
    sent.on('error', (error) => (answer.left ? resolve(answer) : reject(error)));
    sent.on('response', (response) => {
      answer.status = response.statusCode;
      response.setEncoding('utf8');
      let rest = '';
      let chunks = 0;
      let last = begun;
      response.on('data', (data) => {
        if (answer.left) return;
        rest += data;
        if (answer.status !== 200) return;
        const lines = rest.split('\n');
        rest = lines.pop();
        for (const line of lines) {
          if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
          const event = JSON.parse(line.slice(6));
          if (event.error) {
            answer.status = 500;
            answer.error = event.error.message;
            continue;
          }
          const [choice] = event.choices;
          if (!choice) continue;
          if (choice.text) {
            const now = performance.now();
            if (answer.first === null) answer.first = now - begun;
            else answer.gaps.push(now - last);
            last = now;
            ++chunks;
            if (onText(choice.text)) leaveAfter = 0;
          }
          answer.text += choice.text ?? '';
          answer.finish = choice.finish_reason ?? answer.finish;
        }
        if (chunks >= leaveAfter) leave();
      });
      response.on('end', () => resolve(answer));
      response.on('error', (error) => (answer.left ? resolve(answer) : reject(error)));
    });
    sent.end(body, () => {
      if (leaveAfter === 0) leave();
    });
  });
}

/** The value below which the given share of the numbers lies. */
export function percentile(numbers, share) {
  if (numbers.length === 0) return NaN;
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** A generator of numbers from 0 to 1 that a seed determines (mulberry32's recurrence). */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
