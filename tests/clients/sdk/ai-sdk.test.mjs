// The npm packages `ai` and `@ai-sdk/openai-compatible`, unmodified, against the server.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { z } from 'zod';
import { startServer } from './server.mjs';

let provider;
before(async () => {
  const { url } = await startServer();
  provider = createOpenAICompatible({
    name: 'verbatim', baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true,
  });
});

const prompt = 'Tom has 3 apples and buys 4 more. How many apples has he?';

describe('the ai package', () => {
  it('generates and streams the same text', async () => {
    const ask = { model: provider('target'), prompt, temperature: 0, maxOutputTokens: 32, maxRetries: 0 };
    const whole = await generateText(ask);
    const stream = streamText(ask);
    let text = '';
    for await (const piece of stream.textStream) text += piece;
    assert.equal(text, whole.text);
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
  });

  it('completes text', async () => {
    const { text } = await generateText({
      model: provider.completionModel('target'), prompt: 'def add(a, b):', temperature: 0, maxOutputTokens: 8,
      maxRetries: 0,
    });
    assert.ok(text.length > 0);
  });

  it('generates objects of a schema', async () => {
    const schema = z.object({ count: z.number().int().min(0).max(999), fruit: z.enum(['apple', 'pear']) });
    const { object } = await generateObject({
      model: provider('target'), prompt, schema, temperature: 0, maxOutputTokens: 100, maxRetries: 0,
    });
    assert.deepEqual(schema.parse(object), object);
  });

  it('runs tools in steps', async () => {
    let calls = 0;
    const add = tool({
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number().int().min(0).max(99), b: z.number().int().min(0).max(99) }),
      execute: async ({ a, b }) => { ++calls; return a + b; },
    });
    const result = await generateText({
      model: provider('target'), prompt, tools: { add }, temperature: 0, maxOutputTokens: 100, maxRetries: 0,
      stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }),
    });
    assert.ok(calls >= 1);
    assert.equal(result.steps.length, 2);
  });

  it('embeds', async () => {
    const { embedding } = await embed({ model: provider.textEmbeddingModel('target'), value: 'import os' });
    assert.equal(embedding.length, 512);
  });

  it('is cancelled by its reader', async () => {
    const controller = new AbortController();
    const stream = streamText({
      model: provider('target'), prompt, temperature: 1, maxOutputTokens: 400, abortSignal: controller.signal,
      maxRetries: 0,
    });
    let pieces = 0;
    for await (const part of stream.fullStream) {
      if (part.type === 'text-delta' && ++pieces === 2) controller.abort();
    }
    assert.ok(pieces >= 2);
  });
});
