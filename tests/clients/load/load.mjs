// Puts `verbatim serve` under load and checks what it answers. See README.md beside this file.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { openIdle } from './idle.mjs';
import { startServer } from '../serve.mjs';
import { percentile, streamCompletion } from './stream.mjs';
import { answersAlone, describe, makeRequests, runCrowd } from './workload.mjs';

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    streams: { type: 'string', default: '64' },
    requests: { type: 'string', default: '64' },
    idle: { type: 'string', default: '2000' },
    windows: { type: 'string', default: '9' },
    window: { type: 'string', default: '4' },
    rates: { type: 'string', default: '1,4,8,16,32' },
  },
});
const seconds = Number(options.seconds);
const window = Number(options.window);
const problems = [];
const check = (good, problem) => { if (!good) problems.push(problem); };
const residentMegabytes = (pid) =>
  Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;

async function crowd(server, requests, expected) {
  const resident = [];
  const timer = setInterval(() => resident.push(residentMegabytes(server.child.pid)), 1000);
  const result = await runCrowd(server.url, requests, expected, { streams: Number(options.streams), seconds });
  clearInterval(timer);
  console.log(`${options.streams} streams for ${seconds} s: ${describe(result)}`);
  // The caches fill at the beginning.
  const quarter = Math.floor(resident.length / 4);
  const middle = percentile(resident.slice(quarter, 2 * quarter), 0.5);
  const last = percentile(resident.slice(-quarter), 0.5);
  console.log(`resident memory: median ${middle.toFixed(0)} MB in the second quarter, ${last.toFixed(0)} MB in the last`);
  check(last < middle * 1.1 + 8, `memory grew from ${middle} to ${last} MB`);
  check(result.completed > 0, 'nothing was completed');
  check(result.wrong === 0, `${result.wrong} replies had other bytes`);
  check(result.failed.length === 0, `failures: ${[...new Set(result.failed)].slice(0, 5).join('; ')}`);
}

async function idleConnections(server, requests, expected) {
  const ratios = { first: [], gaps: [] };
  const crowded = (seed) => runCrowd(server.url, requests, expected,
    { streams: 8, seconds: Math.max(window, seconds / 20), think: 200, leaving: 0, seed });
  for (let i = 0; i < Number(options.windows); ++i) {
    const alone = await crowded(i + 1);
    const idle = await openIdle(server.url, Number(options.idle));
    const beside = await crowded(i + 1);
    check(idle.lost() === 0, `${idle.lost()} idle connections were lost`);
    idle.close();
    for (const what of ['first', 'gaps']) ratios[what].push(percentile(beside[what], 0.5) / percentile(alone[what], 0.5));
  }
  const [first, gaps] = [ratios.first, ratios.gaps].map((each) =>
    `${percentile(each, 0.5).toFixed(2)} (mean ${spread(each)})`);
  console.log(`p50 beside ${options.idle} idle connections over p50 without, medians of ${options.windows} ` +
    `alternating windows: first token ${first}, between tokens ${gaps}`);
}

/** Tokens per second of `auto` over plain with streams that never pause, in alternating windows. */
async function rates(server, requests) {
  const asked = requests.map((each) => ({ ...each, max_tokens: 64 }));
  const lengths = [];
  for (const request of asked) lengths.push(await lengthOf(server.url, request));
  for (const streams of options.rates.split(',').filter(Boolean).map(Number)) {
    const ratios = [];
    const speeds = { plain: [], auto: [] };
    for (let i = 0; i < Number(options.windows); ++i) {
      // Neither is always the one that finds the prompts remembered.
      for (const recipe of i % 2 === 0 ? ['plain', 'auto'] : ['auto', 'plain']) {
        speeds[recipe].push(await speedOf(server.url, asked, lengths, recipe, streams));
      }
      ratios.push(speeds.auto.at(-1) / speeds.plain.at(-1));
    }
    const median = (each) => percentile(each, 0.5);
    console.log(`${streams} streams: plain ${median(speeds.plain).toFixed(0)}, auto ${median(speeds.auto).toFixed(0)} ` +
      `tokens/s, auto over plain ${median(ratios).toFixed(2)} (mean ${spread(ratios)})`);
  }
}

/** The mean of the numbers and its standard error. */
function spread(numbers) {
  const mean = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  const squares = numbers.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  return `${mean.toFixed(3)} ± ${Math.sqrt(squares / (numbers.length - 1) / numbers.length).toFixed(3)}`;
}

/** The characters and the tokens of the answer to a request. */
async function lengthOf(base, request) {
  const response = await fetch(new URL('/v1/completions', base), {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return { characters: answer.choices[0].text.length, tokens: answer.usage.completion_tokens };
}

/**
 * Tokens per second while `streams` clients each ask for one answer after the other. Every recipe gives the same
 * texts, so the tokens that have arrived are known from the characters. Where one answer ends the next begins, from
 * the first second to the last: if a number of answers were waited for, the last ones would run with few beside them.
 */
async function speedOf(base, requests, lengths, recipe, streams) {
  const begin = performance.now() + 1000;
  const end = begin + 1000 * window;
  let next = 0;
  let tokens = 0;
  const client = async () => {
    while (performance.now() < end) {
      const index = next++ % requests.length;
      const { characters, tokens: all } = lengths[index];
      const onText = (text) => {
        const now = performance.now();
        if (now >= begin && now < end) tokens += text.length * all / characters;
        return now >= end;
      };
      const answer = await streamCompletion(base, { ...requests[index], verbatim: { recipe } }, { onText });
      if (answer.status !== 200) throw new Error(`a request was answered ${answer.status} ${answer.error ?? ''}`);
    }
  };
  await Promise.all(Array.from({ length: streams }, client));
  return tokens / window;
}

const server = await startServer('--batch', '32', '--recipes', 'plain,auto');
const requests = makeRequests('target', Number(options.requests));
const expected = await answersAlone(server.url, requests);
await crowd(server, requests, expected);
if (Number(options.idle) > 0) await idleConnections(server, requests, expected);
await rates(server, requests);
await server.stop();
for (const problem of problems) console.log(`PROBLEM: ${problem}`);
console.log(problems.length === 0 ? 'the load was carried' : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
