/** A peer that is gone without a word: its connection stands, and nobody answers on it. */
import { once } from 'node:events';
import { connect as dial } from 'node:http2';
import { type AddressInfo, createServer, connect as dialTcp, type Socket } from 'node:net';
import { connect as dialTls } from 'node:tls';
import { bind, Health, HealthCheckResponse_ServingStatus as Status } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { createTestCa } from '../wire/test-pki.ts';
import { serve } from './server.ts';

const silent = () => undefined;

/** A network between the two that can lose everything and tell neither. */
async function wayTo(port: number) {
  const sockets: Socket[] = [];
  const network = createServer((near) => {
    const far = dialTcp(port, '127.0.0.1');
    sockets.push(near, far);
    for (const end of [near, far]) end.on('error', silent);
    near.pipe(far);
    far.pipe(near);
  });
  network.listen(0, '127.0.0.1');
  await once(network, 'listening');
  return {
    port: (network.address() as AddressInfo).port,
    loseAll: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      network.close();
    },
  };
}

/** The call of a peer that has had a message of it; `over` resolves when that call ends. */
async function callOf(hearsOn: boolean) {
  const ca = await createTestCa();
  const over = Promise.withResolvers<void>();
  const health = bind(Health, {
    check: () => ({}),
    list: () => ({}),
    watch: async function* (_request, { signal }) {
      signal.addEventListener('abort', () => over.resolve());
      yield { status: Status.SERVING };
      await over.promise;
    },
  });
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, tls: await ca.server(), services: [health] },
    ...{ log, clock: nodeClock(), random: nodeRandom() },
    limits: { keepaliveAfterMs: 50, keepaliveTimeoutMs: 1_000, closeGraceMs: 200 },
  });
  const way = await wayTo(server.port);
  const socket = dialTls({
    ...{ host: '127.0.0.1', port: way.port, ALPNProtocols: ['h2'] },
    ca: ca.caPem,
  });
  const session = dial('https://localhost', { createConnection: () => socket });
  session.on('error', silent);
  const stream = session.request({
    ...{ ':method': 'POST', ':path': '/grpc.health.v1.Health/Watch', te: 'trailers' },
    'content-type': 'application/grpc',
  });
  stream.on('error', silent);
  stream.end(Buffer.alloc(5));
  await once(stream, 'data');
  const pings = hearsOn ? 3 : 0;
  for (let count = 0; count < pings; count += 1) await once(session, 'ping');
  if (!hearsOn) way.loseAll();
  return {
    over: over.promise,
    stop: async () => {
      session.destroy();
      socket.destroy();
      way.close();
      await server.close();
    },
  };
}

test('a call ends when nobody answers any more on its connection', async () => {
  const { over, stop } = await callOf(false);
  await over;
  await stop();
});

test('a call without a message goes on while the peer answers', async () => {
  const { over, stop } = await callOf(true);
  const state = await Promise.race([over.then(() => 'over'), Promise.resolve('under way')]);
  expect(state).toBe('under way');
  await stop();
});
