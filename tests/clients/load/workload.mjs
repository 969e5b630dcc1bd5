// The requests of a load, what each is answered with alone, and a crowd of clients that ask for them at random.
import { readFileSync } from 'node:fs';
import { percentile, randomNumbers, streamCompletion } from './stream.mjs';

const prompts = readFileSync(new URL('../../data/prompts.jsonl', import.meta.url), 'utf8')
  .trim().split('\n').map((line) => JSON.parse(line).prompt);

/** `count` different requests: prompts of the repository, greedy and sampled, of different lengths. */
export function makeRequests(model, count) {
  return Array.from({ length: count }, (_, i) => ({
    model,
    prompt: prompts[i % prompts.length].slice(0, 1200),
    max_tokens: 16 + ((i * 7) % 49),
    temperature: i % 3 === 0 ? 0 : 0.8,
    seed: i,
  }));
}

/** Asks for each request alone, one after the other, and returns their texts. */
export async function answersAlone(base, requests) {
  const texts = [];
  for (const request of requests) {
    const answer = await streamCompletion(base, request);
    if (answer.status !== 200) throw new Error(`a request alone was answered ${answer.status} ${answer.error ?? ''}`);
    texts.push(answer.text);
  }
  return texts;
}

/** Runs `streams` clients for `seconds`: they think, ask, read to the end, or leave before. */
export async function runCrowd(base, requests, expected, { streams, seconds, think = 1000, leaving = 0.25, seed = 1 }) {
  const end = performance.now() + seconds * 1000;
  const result = { asked: 0, completed: 0, left: 0, refused: 0, wrong: 0, failed: [], first: [], gaps: [], bytes: 0 };
  const client = async (random) => {
    while (performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, random() * think));
      const index = Math.floor(random() * requests.length);
      const leaveAfter = random() < leaving ? Math.floor(random() * 12) : Infinity;
      ++result.asked;
      try {
        const answer = await streamCompletion(base, requests[index], { leaveAfter });
        if (answer.first !== null) result.first.push(answer.first);
        for (const gap of answer.gaps) result.gaps.push(gap);
        if (answer.left) ++result.left;
        else if (answer.status === 429) ++result.refused;
        else if (answer.status !== 200) result.failed.push(`${answer.status} ${answer.error ?? ''}`);
        else {
          ++result.completed;
          result.bytes += Buffer.byteLength(answer.text);
          if (answer.text !== expected[index]) ++result.wrong;
        }
      } catch (error) {
        result.failed.push(error.message);
      }
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, i) => client(randomNumbers(seed * 1000 + i))));
  return result;
}

/** One line about a crowd's result. */
export function describe(result) {
  const ms = (numbers, share) => `${percentile(numbers, share).toFixed(0)} ms`;
  return `${result.asked} asked, ${result.completed} completed, ${result.left} left, ${result.refused} refused (429), ` +
    `${result.failed.length} failed, ${result.wrong} with other bytes; first token p50 ${ms(result.first, 0.5)}, ` +
    `p99 ${ms(result.first, 0.99)}; between tokens p50 ${ms(result.gaps, 0.5)}, p99 ${ms(result.gaps, 0.99)}`;
}
