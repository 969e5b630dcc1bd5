// The npm package `@anthropic-ai/sdk`, unmodified, against the server.
import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { collect, startServer } from './server.mjs';

const ask = {
  model: 'target',
  max_tokens: 40,
  temperature: 0,
  messages: [{ role: 'user', content: 'Tom has 3 apples and buys 4 more. How many apples has he?' }],
};
const weather = {
  name: 'get_weather',
  description: 'The weather of a city',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', maxLength: 20 }, days: { type: 'integer', minimum: 1, maximum: 7 } },
    required: ['city', 'days'],
    additionalProperties: false,
  },
};

let client;
before(async () => {
  const { url } = await startServer();
  client = new Anthropic({ baseURL: url, apiKey: 'unused', maxRetries: 0 });
});

describe('messages', () => {
  it('are answered, and stream the same answer', async () => {
    const whole = await client.messages.create(ask);
    assert.equal(whole.role, 'assistant');
    const stream = client.messages.stream(ask);
    let text = '';
    stream.on('text', (delta) => { text += delta; });
    const final = await stream.finalMessage();
    assert.deepEqual(final.content, whole.content);
    assert.equal(text, whole.content[0].text);
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
    assert.equal(final.stop_reason, whole.stop_reason);
  });

  it('stream the events of the interface in their order', async () => {
    const events = await collect(await client.messages.create({ ...ask, stream: true }));
    const types = events.map((each) => each.type).filter((type) => type !== 'ping');
    assert.equal(types[0], 'message_start');
    assert.equal(types[1], 'content_block_start');
    assert.deepEqual(types.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
  });

  it('take a system text and blocks, and end at a stop sequence', async () => {
    const answer = await client.messages.create({
      ...ask,
      system: [{ type: 'text', text: 'Answer briefly.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is 2 + 3?' }] }],
      stop_sequences: ['e', ' ', '.'],
    });
    assert.ok(['stop_sequence', 'end_turn'].includes(answer.stop_reason));
    if (answer.stop_reason === 'stop_sequence') assert.ok(['e', ' ', '.'].includes(answer.stop_sequence));
  });

  it('are counted before they are sent', async () => {
    const { input_tokens: counted } = await client.messages.countTokens({ model: ask.model, messages: ask.messages });
    const { usage } = await client.messages.create(ask);
    assert.equal(counted, usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
  });

  it('use tools over two turns', async () => {
    const first = await client.messages.create({
      ...ask, max_tokens: 120, tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: true },
    });
    assert.equal(first.stop_reason, 'tool_use');
    const use = first.content.find((each) => each.type === 'tool_use');
    assert.equal(use.name, 'get_weather');
    assert.ok(Number.isInteger(use.input.days));
    const second = await client.messages.create({
      ...ask,
      tools: [weather],
      tool_choice: { type: 'none' },
      messages: [...ask.messages, { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'sunny' }] }],
    });
    assert.equal(second.content[0].type, 'text');
  });

  it('stream the input of a tool in pieces', async () => {
    const stream = client.messages.stream({
      ...ask, max_tokens: 120, tools: [weather], tool_choice: { type: 'tool', name: 'get_weather' },
    });
    let pieces = 0;
    stream.on('inputJson', () => { ++pieces; });
    const final = await stream.finalMessage();
    const use = final.content.find((each) => each.type === 'tool_use');
    assert.equal(typeof use.input.city, 'string');
    assert.ok(pieces > 1);
  });

  it('are cancelled by their reader', async () => {
    const stream = client.messages.stream({ ...ask, max_tokens: 400, temperature: 1 });
    stream.on('text', () => stream.abort());
    await assert.rejects(stream.done(), Anthropic.APIUserAbortError);
  });
});
