// `verbatim agent` with the reference servers of the Model Context Protocol as they come from npm, and a scripted model.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync, existsSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

const here = import.meta.dirname;
const program = process.env.VERBATIM_PROGRAM ?? path.join(here, '../../../build/verbatim');
const folder = mkdtempSync(path.join(tmpdir(), 'verbatim-mcp-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const bin = (name) => path.join(here, 'node_modules/.bin', name);

// A model that says the plan, and then that it has the answer.
async function ask(plan, { servers, options = ['--yes'] }) {
  const model = http.createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      const joins = JSON.parse(body).messages.at(-1).content.includes('The results:');
      const text = joins ? 'Thought: I have it.\nAction: Finish(done)' : plan;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      for (let at = 0; at < text.length; at += 5) {
        response.write(`data: ${JSON.stringify({ choices: [{ delta: { content: text.slice(at, at + 5) } }] })}\n\n`);
      }
      response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
    });
  });
  await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve));
  const tools = path.join(folder, 'tools.json');
  writeFileSync(tools, JSON.stringify({ mcpServers: servers }));
  const endpoint = `http://127.0.0.1:${model.address().port}/v1`;
  const { out, err, code } = await new Promise((resolve) =>
    execFile(program, ['agent', '--endpoint', endpoint, '--tools', tools, '--json', '-q', 'x', ...options], (error, out, err) =>
      resolve({ out, err, code: error?.code ?? 0 }),
    ),
  );
  model.close();
  const events = out.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const results = {};
  for (const event of events) if (event.event === 'settled') results[event.task] = event;
  return { events, results, err, code };
}

const everything = { everything: { command: bin('mcp-server-everything') } };
const files = { files: { command: bin('mcp-server-filesystem'), args: [folder] } };
const memory = { memory: { command: bin('mcp-server-memory'), env: { MEMORY_FILE_PATH: path.join(folder, 'memory.jsonl') } } };

test('server-everything: texts, JSON, pictures, resources, progress', async () => {
  const plan = `1. echo("hello")
2. get-sum(2, 40)
3. get-structured-content("New York")
4. get-tiny-image()
5. trigger-long-running-operation(duration=1, steps=2)
6. echo("$2 and $1")
7. get-resource-reference(resourceType="Text", resourceId=1)
join()
`;
  const { results, events, err, code } = await ask(plan, { servers: everything });
  assert.equal(code, 0, err);
  assert.match(results[1].text, /hello/);
  assert.match(results[2].text, /42/);
  assert.equal(typeof JSON.parse(results[3].text).temperature, 'number');
  assert.match(results[4].text, /\(image, image\/png, \d+ bytes\)/);
  assert.equal(results[5].state, 'done');
  assert.ok(events.some((event) => event.event === 'progress' && event.task === 5), 'progress is told');
  assert.match(results[6].text, /42.*hello/s);
  assert.equal(results[7].state, 'done');
});

test('server-everything: a call that takes too long is cancelled', async () => {
  const servers = { everything: { ...everything.everything, settings: { seconds: 0.5 } } };
  const { results, code } = await ask('1. trigger-long-running-operation(duration=30, steps=30)\n2. echo("x")\njoin()\n', { servers });
  assert.equal(code, 0);
  assert.equal(results[1].state, 'failed');
  assert.match(results[1].text, /it took more than 0.5 s/);
  assert.equal(results[2].state, 'done');
});

test('server-filesystem: reads, writes, and what is denied', async () => {
  const file = path.join(folder, 'note.txt');
  const plan = `1. write_file(${JSON.stringify(file)}, "two lines\\nof text")\njoin()\n`;
  const { results, code } = await ask(plan, { servers: files });
  assert.equal(code, 0);
  assert.equal(results[1].state, 'done');
  assert.equal(readFileSync(file, 'utf8'), 'two lines\nof text');
  const read = await ask(`1. read_text_file(${JSON.stringify(file)})\njoin()\n`, { servers: files });
  assert.equal(JSON.parse(read.results[1].text).content, 'two lines\nof text');
  const outside = await ask('1. read_text_file("/etc/passwd")\njoin()\n', { servers: files });
  assert.equal(outside.results[1].state, 'failed');
  const denied = { files: { ...files.files, tools: { write_file: { policy: 'deny' } } } };
  const other = path.join(folder, 'other.txt');
  const refused = await ask(`1. write_file(${JSON.stringify(other)}, "x")\njoin()\n`, { servers: denied });
  assert.equal(refused.code, 1);
  assert.match(refused.err, /there is no tool `write_file`/);
  assert.ok(!existsSync(other));
  const unasked = await ask(`1. write_file(${JSON.stringify(other)}, "x")\njoin()\n`, { servers: files, options: [] });
  assert.match(unasked.results[1].text, /nobody is there to allow the call/);
  assert.ok(!existsSync(other));
});

test('server-memory, beside the others', async () => {
  const plan = `1. create_entities([{"name": "Ann", "entityType": "person", "observations": ["born in 1950"]}])
2. echo("$1")
3. list_allowed_directories()
join()
`;
  const { results, code, err } = await ask(plan, { servers: { ...everything, ...files, ...memory } });
  assert.equal(code, 0, err);
  assert.match(results[1].text, /Ann/);
  assert.match(results[2].text, /Ann/);
  assert.match(results[3].text, new RegExp(path.basename(folder)));
  const later = await ask('1. search_nodes("Ann")\njoin()\n', { servers: memory });
  assert.match(later.results[1].text, /born in 1950/);
});

test('server-everything over streamable HTTP', async () => {
  const { spawn } = await import('node:child_process');
  const port = 20000 + Math.floor(Math.random() * 20000);
  const server = spawn(bin('mcp-server-everything'), ['streamableHttp'], { env: { ...process.env, PORT: String(port) } });
  try {
    await new Promise((resolve, reject) => {
      const look = (text) => /listening|running|port/i.test(String(text)) && resolve();
      server.stdout.on('data', look);
      server.stderr.on('data', look);
      server.on('exit', () => reject(new Error('the server ended')));
    });
    const servers = { everything: { url: `http://127.0.0.1:${port}/mcp` } };
    const { results, code, err } = await ask('1. echo("over HTTP")\n2. get-sum(1, 2)\njoin()\n', { servers });
    assert.equal(code, 0, err);
    assert.match(results[1].text, /over HTTP/);
    assert.match(results[2].text, /3/);
  } finally {
    server.kill();
  }
});
