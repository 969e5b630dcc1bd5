// Starts `verbatim serve` and stops it.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
export const program = process.env.VERBATIM_PROGRAM ?? `${root}build/verbatim`;
export const model = process.env.VERBATIM_MODEL ?? `${root}models/target`;

/** Starts a server with further arguments on a free port, and resolves to its address when it listens. */
export async function startServer(...args) {
  const child = spawn(program, ['serve', model, '--port', '0', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  };
  let said = '';
  const url = await new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      said += text;
      const found = said.match(/listening on (https?:\/\/\S+?:\d+)/);
      if (found) resolve(found[1]);
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  return { url, child, stop, log: () => said };
}
