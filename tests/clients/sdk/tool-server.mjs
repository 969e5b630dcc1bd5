// A server of tools that speaks the Model Context Protocol over its standard streams. The file that its argument names
// gets a line for each call that is called off.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const tools = [
  { name: 'echo', description: 'Says it again.', inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
  { name: 'fail', description: 'Fails.', inputSchema: { type: 'object' } },
  { name: 'wait', description: 'Never answers.', inputSchema: { type: 'object' } },
];

const results = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: given }) => {
    if (name === 'wait') return undefined;
    const text = name === 'fail' ? 'no luck' : `echo: ${given.text}`;
    return { content: [{ type: 'text', text }], isError: name === 'fail' };
  },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'notifications/cancelled') appendFileSync(process.argv[2], 'cancelled\n');
  const result = results[method]?.(params);
  if (id !== undefined && result !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
});
