// The npm package `openai`, unmodified, against the server.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { collect, startServer } from './server.mjs';

const model = 'target';
const question = [{ role: 'user', content: 'Tom has 3 apples and buys 4 more. How many apples has he?' }];
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    strict: true,
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 20 },
        unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
      },
      required: ['city', 'unit'],
      additionalProperties: false,
    },
  },
};
const calculator = {
  type: 'function',
  function: {
    name: 'add',
    parameters: {
      type: 'object',
      properties: { a: { type: 'integer', minimum: 0, maximum: 99 }, b: { type: 'integer', minimum: 0, maximum: 99 } },
      required: ['a', 'b'],
      additionalProperties: false,
    },
  },
};

let client;
before(async () => {
  const { url } = await startServer();
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'unused', maxRetries: 0 });
});

describe('models', () => {
  it('are listed and retrieved', async () => {
    const models = await collect(client.models.list());
    assert.deepEqual(models.map((each) => each.id), [model]);
    assert.equal((await client.models.retrieve(model)).object, 'model');
  });
});

describe('completions', () => {
  const ask = { model, prompt: 'def add(a, b):', max_tokens: 24, seed: 7, temperature: 0.8 };

  it('stream the text of a whole answer, and repeat it for a seed', async () => {
    const whole = await client.completions.create(ask);
    const chunks = await collect(await client.completions.create({ ...ask, stream: true }));
    assert.equal(chunks.map((each) => each.choices[0]?.text ?? '').join(''), whole.choices[0].text);
    assert.equal((await client.completions.create(ask)).choices[0].text, whole.choices[0].text);
    assert.equal(whole.usage.completion_tokens, 24);
    assert.equal(whole.choices[0].finish_reason, 'length');
  });

  it('are the same bytes without speculation', async () => {
    const plain = await client.completions.create({ ...ask, verbatim: { speculation: false } });
    const fast = await client.completions.create(ask);
    assert.equal(fast.choices[0].text, plain.choices[0].text);
    assert.equal(plain.verbatim.drafted, 0);
    assert.equal(fast.verbatim.lossless, true);
  });

  it('give several choices for several prompts', async () => {
    const answer = await client.completions.create({ ...ask, prompt: ['import os', 'import re'], n: 2 });
    assert.deepEqual(answer.choices.map((each) => each.index), [0, 1, 2, 3]);
  });

  it('echo the prompt, end before a stop string and have log-probabilities', async () => {
    const answer = await client.completions.create({
      ...ask, temperature: 0, echo: true, stop: ['\n'], logprobs: 2,
    });
    const [choice] = answer.choices;
    assert.ok(choice.text.startsWith(ask.prompt));
    assert.ok(!choice.text.slice(ask.prompt.length).includes('\n'));
    assert.ok(choice.logprobs.tokens.length > 0);
    assert.equal(choice.logprobs.tokens.length, choice.logprobs.token_logprobs.length);
  });
});

describe('chat completions', () => {
  const ask = { model, messages: question, max_tokens: 32, seed: 3 };

  it('answer, and stream the same answer with its usage', async () => {
    const whole = await client.chat.completions.create(ask);
    assert.equal(whole.choices[0].message.role, 'assistant');
    const chunks = await collect(
      await client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } }));
    const text = chunks.map((each) => each.choices[0]?.delta.content ?? '').join('');
    assert.equal(text, whole.choices[0].message.content);
    assert.deepEqual(chunks.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
    assert.equal(chunks.filter((each) => each.choices[0]?.finish_reason).length, 1);
  });

  it('remember the beginning of a conversation', async () => {
    const long = [{ role: 'user', content: 'word '.repeat(300) }];
    await client.chat.completions.create({ ...ask, messages: long, max_tokens: 4 });
    const again = await client.chat.completions.create({ ...ask, messages: long, max_tokens: 4 });
    assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0);
  });

  it('are cancelled by their reader', async () => {
    const stream = await client.chat.completions.create({ ...ask, max_tokens: 400, stream: true });
    let chunks = 0;
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      if (++chunks === 3) stream.controller.abort();
    }
    assert.ok(chunks >= 3);
    const next = await client.chat.completions.create({ ...ask, max_tokens: 2 });
    assert.equal(next.usage.completion_tokens, 2);
  });

  it('have log-probabilities with the likeliest tokens', async () => {
    const answer = await client.chat.completions.create({ ...ask, temperature: 0, logprobs: true, top_logprobs: 3 });
    const tokens = answer.choices[0].logprobs.content;
    assert.ok(tokens.length > 0);
    for (const token of tokens) {
      assert.equal(token.top_logprobs.length, 3);
      assert.ok(token.logprob <= 0);
      assert.ok(Array.isArray(token.bytes));
      assert.ok(token.top_logprobs[0].logprob >= token.logprob);
    }
  });

  it('give several choices', async () => {
    const answer = await client.chat.completions.create({ ...ask, n: 3, temperature: 1 });
    assert.deepEqual(answer.choices.map((each) => each.index), [0, 1, 2]);
    assert.ok(new Set(answer.choices.map((each) => each.message.content)).size > 1);
  });

  it('obey a logit bias', async () => {
    const { tokens } = await client.post('/../tokenize', { body: { content: ' the' } });
    const answer = await client.chat.completions.create({
      ...ask, max_tokens: 4, logit_bias: { [tokens[0]]: 100 }, temperature: 0,
    });
    assert.ok(answer.choices[0].message.content.includes('the'));
  });

  it('keep to a strict JSON schema', async () => {
    const Apples = z.object({
      count: z.number().int().min(0).max(999),
      colour: z.enum(['red', 'green']),
      owner: z.object({ name: z.string().max(12) }),
    });
    for (const temperature of [0, 1]) {
      const answer = await client.chat.completions.parse({
        ...ask, max_tokens: 200, temperature, response_format: zodResponseFormat(Apples, 'apples'),
      });
      assert.equal(answer.choices[0].finish_reason, 'stop');
      assert.deepEqual(Apples.parse(JSON.parse(answer.choices[0].message.content)), answer.choices[0].message.parsed);
    }
  });

  it('write any JSON object if asked to', async () => {
    const answer = await client.chat.completions.create({
      ...ask, max_tokens: 300, temperature: 0, response_format: { type: 'json_object' },
    });
    if (answer.choices[0].finish_reason === 'stop') {
      assert.equal(typeof JSON.parse(answer.choices[0].message.content), 'object');
    } else {
      assert.equal(answer.choices[0].message.content[0], '{');
    }
  });

  it('call tools over two turns', async () => {
    const messages = [{ role: 'user', content: 'How is the weather in Rome?' }];
    const first = await client.chat.completions.create({
      ...ask, messages, max_tokens: 120, tools: [weather], tool_choice: 'required', temperature: 0,
    });
    const { message, finish_reason: reason } = first.choices[0];
    assert.equal(reason, 'tool_calls');
    assert.ok(message.tool_calls.length >= 1);
    const [call] = message.tool_calls;
    assert.equal(call.function.name, 'get_weather');
    assert.ok(['celsius', 'fahrenheit'].includes(JSON.parse(call.function.arguments).unit));
    const results = message.tool_calls.map((each) => ({ role: 'tool', tool_call_id: each.id, content: '21 degrees' }));
    const second = await client.chat.completions.create({
      ...ask, messages: [...messages, message, ...results], tools: [weather], tool_choice: 'none',
    });
    assert.equal(second.choices[0].message.tool_calls, undefined);
    assert.equal(typeof second.choices[0].message.content, 'string');
  });

  it('stream the calls of a named tool in pieces', async () => {
    const runner = client.chat.completions.stream({
      ...ask, max_tokens: 120, tools: [weather, calculator], parallel_tool_calls: false,
      tool_choice: { type: 'function', function: { name: 'add' } },
    });
    let pieces = 0;
    for await (const chunk of runner) {
      if (chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments) ++pieces;
    }
    const final = await runner.finalChatCompletion();
    const calls = final.choices[0].message.tool_calls;
    assert.equal(calls.length, 1);
    assert.equal(calls[0].function.name, 'add');
    const { a, b } = JSON.parse(calls[0].function.arguments);
    assert.ok(Number.isInteger(a) && Number.isInteger(b));
    assert.ok(pieces > 1);
  });
});

describe('embeddings', () => {
  it('are vectors of length 1, alike for alike texts', async () => {
    const { data } = await client.embeddings.create({ model, input: ['import os', 'import os', 'seven apples'] });
    const dot = (a, b) => a.reduce((sum, each, i) => sum + each * b[i], 0);
    const [a, b, c] = data.map((each) => each.embedding);
    assert.equal(a.length, 512);
    assert.ok(Math.abs(dot(a, b) - 1) < 1e-5);
    assert.ok(dot(a, c) < dot(a, b));
    const floats = await client.embeddings.create({ model, input: 'import os', encoding_format: 'float' });
    assert.deepEqual(floats.data[0].embedding.map(Math.fround), a.map(Math.fround));
  });
});

describe('responses', () => {
  const ask = { model, input: 'What is 2 + 3?', max_output_tokens: 32 };

  it('answer, go on after an earlier one, and can be retrieved and deleted', async () => {
    const first = await client.responses.create(ask);
    assert.equal(typeof first.output_text, 'string');
    const second = await client.responses.create({ ...ask, input: 'And 4 + 5?', previous_response_id: first.id });
    assert.ok(second.usage.input_tokens > first.usage.input_tokens);
    assert.equal((await client.responses.retrieve(first.id)).output_text, first.output_text);
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
  });

  it('stream events that end in the whole answer', async () => {
    const events = await collect(await client.responses.create({ ...ask, stream: true, temperature: 0 }));
    assert.equal(events[0].type, 'response.created');
    const text = events.filter((each) => each.type === 'response.output_text.delta').map((each) => each.delta).join('');
    const done = events.at(-1);
    assert.ok(['response.completed', 'response.incomplete'].includes(done.type));
    assert.equal(done.response.output[0].content[0].text, text);
    assert.deepEqual(events.map((each) => each.sequence_number), events.map((_, i) => i));
  });

  it('keep to a strict JSON schema', async () => {
    const Sum = z.object({ sum: z.number().int().min(0).max(99) });
    const answer = await client.responses.parse({ ...ask, text: { format: zodTextFormat(Sum, 'sum') } });
    assert.deepEqual(Sum.parse(JSON.parse(answer.output_text)), answer.output_parsed);
  });

  it('call functions over two turns', async () => {
    const tools = [{ type: 'function', strict: true, ...calculator.function }];
    const first = await client.responses.create({ ...ask, tools, tool_choice: 'required', max_output_tokens: 120 });
    const call = first.output.find((each) => each.type === 'function_call');
    assert.equal(call.name, 'add');
    assert.ok(Number.isInteger(JSON.parse(call.arguments).a));
    const outputs = first.output.filter((each) => each.type === 'function_call')
      .map((each) => ({ type: 'function_call_output', call_id: each.call_id, output: '5' }));
    const second = await client.responses.create({
      ...ask, input: outputs, tools, tool_choice: 'none', previous_response_id: first.id,
    });
    assert.equal(second.output[0].type, 'message');
  });
});
