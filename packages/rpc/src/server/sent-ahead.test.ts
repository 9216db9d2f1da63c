/** Messages that come together go out together, in order. */
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dialTcp, type Socket } from 'node:net';
import { bind, Health, HealthCheckResponse_ServingStatus as Status } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { connect } from '../client/channel.ts';
import { createClient } from '../client/client.ts';
import { createTestCa } from '../wire/test-pki.ts';
import { aheadBytesMax, SentAhead } from './sent-ahead.ts';
import { serve } from './server.ts';

/** A stream below, whose messages the test lets out. */
function below() {
  const ahead = new SentAhead();
  const waiting: (() => void)[] = [];
  const given: string[] = [];
  const sent: string[] = [];
  const send = (name: string, bytes: number) =>
    ahead.send(
      bytes,
      () => sent.push(name),
      (gone) => {
        given.push(name);
        waiting.push(gone);
      },
    );
  return { send, given, sent, leave: () => waiting.shift()?.() };
}

test('after the first message has left, others count as sent once they are given on', () => {
  const { send, given, sent, leave } = below();
  send('a', 10);
  expect([given, sent], 'the first one waits').toEqual([['a'], []]);
  leave();
  expect(sent).toEqual(['a']);
  for (const name of ['b', 'c', 'd']) send(name, 10);
  expect([given, sent]).toEqual([
    ['a', 'b', 'c', 'd'],
    ['a', 'b', 'c', 'd'],
  ]);
  for (let left = 0; left < 3; left += 1) leave();
  expect(sent, 'each is told once').toEqual(['a', 'b', 'c', 'd']);
});

test('a stream that is far ahead waits until its message has left, and may go on then', () => {
  const { send, sent, leave } = below();
  send('first', 1);
  leave();
  send('half', aheadBytesMax / 2);
  send('fits', aheadBytesMax / 2);
  send('more', 1);
  expect(sent).toEqual(['first', 'half', 'fits']);
  leave();
  leave();
  expect(sent).toEqual(['first', 'half', 'fits']);
  leave();
  expect(sent).toEqual(['first', 'half', 'fits', 'more']);
  send('large', 2 * aheadBytesMax);
  expect(sent).not.toContain('large');
  leave();
  expect(sent).toContain('large');
});

/** A relay to the port that counts the records of TLS in the answers (RFC 8446 §5.1). */
async function countingWayTo(port: number) {
  let [records, rest] = [0, Buffer.alloc(0)];
  const sockets: Socket[] = [];
  const network = createServer((near) => {
    const far = dialTcp(port, '127.0.0.1');
    sockets.push(near, far);
    for (const end of [near, far]) end.on('error', () => undefined);
    near.pipe(far);
    far.pipe(near);
    far.on('data', (piece: Buffer) => {
      rest = Buffer.concat([rest, piece]);
      for (; rest.length >= 5 && rest.length >= 5 + rest.readUInt16BE(3); records += 1) {
        rest = rest.subarray(5 + rest.readUInt16BE(3));
      }
    });
  });
  network.listen(0, '127.0.0.1');
  await once(network, 'listening');
  return {
    port: (network.address() as AddressInfo).port,
    records: () => records,
    close: () => {
      for (const socket of sockets) socket.destroy();
      network.close();
    },
  };
}

test('a hundred messages that are there at once cost few records, and come in order', async () => {
  const ca = await createTestCa();
  const statuses = [Status.SERVING, Status.NOT_SERVING, Status.UNKNOWN, Status.SERVING];
  const told = Array.from(
    { length: 100 },
    (_, at) => statuses[((at * at) % 7) % 4] ?? Status.SERVING,
  );
  const health = bind(Health, {
    check: () => ({}),
    list: () => ({}),
    watch: async function* () {
      for (const status of told) yield { status };
    },
  });
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, tls: await ca.server(), services: [health] },
    ...{ log, clock: nodeClock(), random: nodeRandom(), limits: { closeGraceMs: 200 } },
  });
  const way = await countingWayTo(server.port);
  const channel = connect({ target: `127.0.0.1:${way.port}`, caPem: ca.caPem });
  try {
    const heard: number[] = [];
    for await (const { status } of createClient(Health, channel).watch({})) heard.push(status);
    expect(heard).toEqual(told);
    expect(way.records()).toBeGreaterThan(1);
    expect(way.records()).toBeLessThan(told.length / 2);
  } finally {
    channel.close();
    way.close();
    await server.close();
  }
});
