// What the test files of this folder share.
import { after } from 'node:test';
import * as serve from '../serve.mjs';

/** Starts a server that is stopped after the tests of the file. */
export async function startServer(...args) {
  const server = await serve.startServer(...args);
  after(server.stop);
  return server;
}

/** Collects an asynchronous iterable. */
export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
