// Tools of the type "mcp" with the package `openai`. What the default model plans is not clever: these tests check that
// what came is whole and fits together, whatever it was.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { collect, startServer } from './server.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'verbatim-tools-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const log = path.join(folder, 'log');
const server = (settings) => ({ command: process.execPath, args: [path.join(import.meta.dirname, 'tool-server.mjs'), log], settings });

let client;
before(async () => {
  const file = path.join(folder, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { free: server({ policy: 'allow' }), asked: server({}) } }));
  const { url } = await startServer('--mcp', file);
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
});

const wanted = (tool, more = {}) => ({
  model: 'target',
  input: 'What does it say?',
  temperature: 0,
  tool_choice: 'required',
  max_tool_calls: 2,
  tools: [{ type: 'mcp', server_label: 'free', allowed_tools: [tool], ...more }],
});

function check(response) {
  assert.equal(response.status, 'completed');
  const [list, ...rest] = response.output;
  assert.equal(list.type, 'mcp_list_tools');
  assert.equal(list.tools.length, 1);
  const message = rest.pop();
  assert.equal(message.type, 'message');
  assert.equal(response.output_text, message.content[0].text);
  assert.ok(rest.length === 1 || rest.length === 2);
  for (const call of rest) {
    assert.equal(call.type, 'mcp_call');
    assert.equal(call.server_label, 'free');
    assert.equal(call.name, list.tools[0].name);
  }
  return rest;
}

describe('tools of servers', () => {
  it('are called, and the response says what came of it', async () => {
    for (const call of check(await client.responses.create(wanted('echo')))) {
      assert.equal(call.status, 'completed');
      assert.equal(call.output, `echo: ${JSON.parse(call.arguments).text}`);
      assert.equal(call.error, null);
    }
  });

  it('that fail are told of', async () => {
    const [first] = check(await client.responses.create(wanted('fail')));
    assert.equal(first.status, 'failed');
    assert.match(first.error, /no luck/);
    assert.equal(first.output, null);
  });

  it('are streamed as events that end in the whole answer', async () => {
    const events = await collect(await client.responses.create({ ...wanted('echo'), stream: true }));
    assert.deepEqual(events.map((each) => each.sequence_number), events.map((_, i) => i));
    assert.equal(events.at(-1).type, 'response.completed');
    const { output } = events.at(-1).response;
    const types = output.map((item, place) => events.filter((each) => each.output_index === place).map((each) => each.type));
    assert.deepEqual(types[0], [
      'response.output_item.added', 'response.mcp_list_tools.in_progress', 'response.mcp_list_tools.completed', 'response.output_item.done',
    ]);
    for (const call of types.slice(1, -1)) {
      assert.deepEqual(call, [
        'response.output_item.added', 'response.mcp_call.in_progress', 'response.mcp_call_arguments.delta',
        'response.mcp_call_arguments.done', 'response.mcp_call.completed', 'response.output_item.done',
      ]);
    }
    const done = events.filter((each) => each.type === 'response.output_item.done');
    for (const event of done) assert.deepEqual(event.item, output[event.output_index]);
  });

  it('come through the helper that puts streams together', async () => {
    const stream = client.responses.stream(wanted('echo'));
    const kinds = new Set();
    stream.on('event', (event) => kinds.add(event.type));
    check(await stream.finalResponse());
    assert.ok(kinds.has('response.mcp_call.completed'));
  });

  it('need the consent that their policy asks for', async () => {
    await assert.rejects(
      client.responses.create(wanted('echo', { server_label: 'asked' })),
      (error) => error instanceof OpenAI.BadRequestError && error.param === 'tools[0].require_approval',
    );
    const response = await client.responses.create(wanted('echo', { server_label: 'asked', require_approval: 'never' }));
    assert.ok(response.output.some((each) => each.type === 'mcp_call' && each.status === 'completed'));
  });

  it('are those of the configuration alone', async () => {
    for (const [name, more] of [
      ['server_label', { server_label: 'other' }],
      ['server_url', { server_url: 'http://localhost:1/mcp' }],
      ['authorization', { authorization: 'secret' }],
      ['headers', { headers: { 'X-Key': 'secret' } }],
      ['allowed_tools', { allowed_tools: ['none'] }],
    ]) {
      await assert.rejects(
        client.responses.create(wanted('echo', more)),
        (error) => error instanceof OpenAI.BadRequestError && error.param === `tools[0].${name}`,
      );
    }
  });

  it('hear of it when the client leaves', async () => {
    const stream = await client.responses.create({ ...wanted('wait'), stream: true });
    for await (const event of stream) {
      if (event.type === 'response.mcp_call.in_progress') break; // which closes the connection
    }
    stream.controller.abort();
    for (let i = 0; i < 600 && !existsSync(log); ++i) await sleep(50);
    assert.match(readFileSync(log, 'utf8'), /cancelled/);
  });
});
