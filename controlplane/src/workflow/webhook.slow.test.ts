/** Calls of webhooks to a receiver on a real socket. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { nodeClock, nodeLog, nodeWebClient } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import type { CallResult } from '../host/index.ts';
import { createWebhookCaller } from './webhook.ts';

test('a receiver knows a call that is made again by its key, and leads it nowhere', async () => {
  const heard: { request: IncomingMessage; body: string }[] = [];
  const statuses = [503, 200, 307];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    heard.push({ request, body: await text(request) });
    const status = statuses[heard.length - 1] ?? 500;
    response.writeHead(status, { location: '/elsewhere' }).end(`answer ${heard.length}`);
  };
  const server = createServer((request, response) => void answer(request, response)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = nodeClock();
  const callWebhook = createWebhookCaller({ web: nodeWebClient(), clock, log: nodeLog('error') });
  const call = (id: string): Promise<CallResult> =>
    new Promise((resolve) => {
      const given = { url: `${origin}/rack?x=1`, body: '{"host":"h1"}', headers: '{"X-A":"b"}' };
      const order = { id, arguments: given, deadlineMs: clock.nowMs() + 10_000, rack: '' };
      // Answered before the next one is requested.
      callWebhook(order, async (result) => void setImmediate(() => resolve(result)));
    });
  expect(await call('uid/7/2/1')).toMatchObject({ kind: 'transientError' });
  expect(await call('uid/7/2/1')).toMatchObject({
    kind: 'complete',
    output: { exit: { code: 200, lastOutput: 'answer 2' } },
  });
  expect(await call('uid/7/3/1')).toMatchObject({ kind: 'failed' });
  const seen = heard.map(({ request: { method, url, headers }, body }) => [
    `${method} ${url}`,
    ...[headers['idempotency-key'], headers['content-type'], headers['x-a'], body],
  ]);
  const sent = ['application/json', 'b', '{"host":"h1"}'];
  expect(seen).toEqual([
    ['POST /rack?x=1', 'uid/7/2/1', ...sent],
    ['POST /rack?x=1', 'uid/7/2/1', ...sent],
    ['POST /rack?x=1', 'uid/7/3/1', ...sent],
  ]);
  server.close();
});
