// Every kind of error, as the clients from npm report it.
import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { startServer } from './server.mjs';

const model = 'target';
const messages = [{ role: 'user', content: 'Hello' }];
const chat = { model, messages, max_tokens: 4 };
const key = 'a-key-for-these-tests';

let url;
let folder;
let openai;
let anthropic;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'verbatim-clients-'));
  await writeFile(join(folder, 'keys'), `${key}\n`, { mode: 0o600 });
  ({ url } = await startServer('--api-key-file', join(folder, 'keys'), '--batch', '1', '--max-queue', '1',
    '--max-body', '0.2'));
  openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
});
after(() => rm(folder, { recursive: true, force: true }));

describe('a client of OpenAI', () => {
  it('is told of a wrong key', async () => {
    const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
  });

  it('is told of a model that is not there', async () => {
    await assert.rejects(openai.chat.completions.create({ ...chat, model: 'none' }), OpenAI.NotFoundError);
  });

  it('is told which field is wrong', async () => {
    const wrong = [
      [{ temperature: 'hot' }, 'temperature'],
      [{ temperature: -1 }, 'temperature'],
      [{ messages: [{ role: 'nobody', content: 'x' }] }, 'messages[0].role'],
      [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }] },
        'messages[0].content[0]'],
      [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
      [{ n: 0 }, 'n'],
      [{ nonsense: 1 }, 'nonsense'],
      [{ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'nonsense' } } } },
        'response_format'],
    ];
    for (const [change, field] of wrong) {
      await assert.rejects(openai.chat.completions.create({ ...chat, ...change }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError, `${field}: ${error}`);
        assert.ok(error.param?.startsWith(field), `${error.param} for ${field}: ${error.message}`);
        return true;
      });
    }
  });

  it('is told of a prompt that is too long', async () => {
    const long = [{ role: 'user', content: 'word '.repeat(3000) }];
    await assert.rejects(openai.chat.completions.create({ ...chat, messages: long }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.code, 'context_length_exceeded');
      return true;
    });
  });

  it('is told of a body that is too large', async () => {
    const large = [{ role: 'user', content: 'x'.repeat(300000) }];
    await assert.rejects(openai.chat.completions.create({ ...chat, messages: large }),
      (error) => error.status === 413 || error instanceof OpenAI.APIConnectionError);
  });

  it('is told to come back later when too many wait', async () => {
    const long = { ...chat, max_tokens: 300, temperature: 1 };
    const asked = await Promise.allSettled(Array.from({ length: 8 }, (_, seed) =>
      openai.chat.completions.create({ ...long, seed })));
    const refused = asked.filter((each) => each.status === 'rejected');
    assert.ok(refused.length > 0);
    assert.ok(asked.some((each) => each.status === 'fulfilled'));
    for (const { reason } of refused) {
      assert.ok(reason instanceof OpenAI.RateLimitError, `${reason}`);
      assert.ok(Number(reason.headers.get('retry-after')) > 0);
    }
  });

  it('is told of a path that is not there', async () => {
    await assert.rejects(openai.get('/nonsense'), OpenAI.NotFoundError);
  });
});

describe('a client of Anthropic', () => {
  it('is told of a wrong key', async () => {
    const stranger = new Anthropic({ baseURL: url, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(stranger.messages.create(chat), Anthropic.AuthenticationError);
  });

  it('is told of a model that is not there', async () => {
    await assert.rejects(anthropic.messages.create({ ...chat, model: 'none' }), Anthropic.NotFoundError);
  });

  it('is told which field is wrong', async () => {
    for (const [change, field] of [[{ temperature: 'hot' }, 'temperature'], [{ max_tokens: undefined }, 'max_tokens'],
      [{ messages: [] }, 'messages'], [{ nonsense: 1 }, 'nonsense']]) {
      await assert.rejects(anthropic.messages.create({ ...chat, ...change }), (error) => {
        assert.ok(error instanceof Anthropic.BadRequestError, `${error}`);
        assert.equal(error.error.error.type, 'invalid_request_error');
        assert.ok(error.message.includes(field), error.message);
        return true;
      });
    }
  });
});
