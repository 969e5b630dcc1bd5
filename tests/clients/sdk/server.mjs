// What the test files of this folder share.
import { after } from 'node:test';
import * as serve from '../serve.mjs';

const servers = [];
after(() => Promise.all(servers.map((server) => server.stop())));

/** Starts a server that is stopped after the tests of the file. */
export async function startServer(...args) {
  const server = await serve.startServer(...args);
  servers.push(server);
  return server;
}

/** Collects an asynchronous iterable. */
export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
