// Kills a server that keeps conversations on disk while it is busy, starts it again, and compares what it answers.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../serve.mjs';
import { answersAlone, makeRequests, runCrowd } from './workload.mjs';

const rounds = Number(process.argv[2] ?? 3);
const folder = mkdtempSync(join(tmpdir(), 'verbatim-kill-'));
const requests = makeRequests('target', 24);
const problems = [];

/** Starts a server and returns it with the seconds until it listened. */
async function timedStart(...args) {
  const begun = performance.now();
  const server = await startServer(...args);
  return { server, seconds: (performance.now() - begun) / 1000 };
}

try {
  const without = await timedStart();
  const expected = await answersAlone(without.server.url, requests);
  await without.server.stop();
  for (let round = 1; round <= rounds; ++round) {
    const { server } = await timedStart('--cache-dir', folder);
    const crowd = runCrowd(server.url, requests, expected, { streams: 16, seconds: 4, think: 50, seed: round });
    await new Promise((resolve) => setTimeout(resolve, 1500 + 400 * round));
    const dead = new Promise((resolve) => server.child.once('exit', resolve));
    server.child.kill('SIGKILL');
    await dead;
    const result = await crowd;
    if (result.wrong > 0) problems.push(`${result.wrong} replies with other bytes before the kill`);

    const again = await timedStart('--cache-dir', folder);
    const answers = await answersAlone(again.server.url, requests);
    const wrong = answers.filter((text, i) => text !== expected[i]).length;
    await again.server.stop();
    const leftover = readdirSync(folder, { recursive: true }).filter((name) => name.includes('partial')).length;
    console.log(`round ${round}: killed amid ${result.asked} requests; listening again after ${again.seconds.toFixed(2)} s ` +
      `(${without.seconds.toFixed(2)} s without a cache), ${wrong} of ${answers.length} answers with other bytes, ` +
      `${leftover} files half written`);
    if (wrong > 0) problems.push(`${wrong} answers with other bytes after the kill`);
    if (leftover > 0) problems.push(`${leftover} files half written`);
    if (again.seconds > without.seconds + 1) problems.push('the restart took more than a second longer');
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const problem of problems) console.log(`PROBLEM: ${problem}`);
console.log(problems.length === 0 ? 'it survives kill -9' : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
