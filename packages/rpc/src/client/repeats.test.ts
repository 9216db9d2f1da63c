/** Calls that read are repeated while a real server is away, and no other ones. */
import { create } from '@bufbuild/protobuf';
import { ApiFailure, bind, RackSchema, RackService, unavailable } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { serve } from '../server/server.ts';
import { createTestCa, type TestCa } from '../wire/test-pki.ts';
import { connect } from './channel.ts';
import { createClient } from './client.ts';
import { pauseBefore, type Repeats, triesMax } from './repeats.ts';

const clock = nodeClock();
const random = { fraction: () => 0 };
let ca: TestCa;
const open: { close(): unknown }[] = [];

beforeAll(async () => {
  ca = await createTestCa();
});

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** A server whose reads and writes give the prepared answers in order; then they succeed. */
async function start(failures: readonly ApiFailure[] = [], port = 0) {
  const calls = { reads: 0, writes: 0 };
  const answers = [...failures];
  const answer = () => {
    const failure = answers.shift();
    if (failure !== undefined) throw failure;
    return create(RackSchema, { name: 'racks/r1' });
  };
  const read = () => {
    calls.reads += 1;
    return answer();
  };
  const write = () => {
    calls.writes += 1;
    return answer();
  };
  const handlers = RackService.methods.map(({ localName }) => [
    localName,
    /^(get|list)/.test(localName) ? read : write,
  ]);
  const server = await serve({
    ...{ address: '127.0.0.1', port, tls: await ca.server(), log, clock, random: nodeRandom() },
    services: [bind(RackService, Object.fromEntries(handlers) as never)],
    limits: { closeGraceMs: 200 },
  });
  open.push(server);
  return { server, calls };
}

function clientAt(port: number, more: Partial<Repeats> = {}) {
  const reconnectAfterMs = { first: 100, longest: 100 };
  const channel = connect({ target: `127.0.0.1:${port}`, caPem: ca.caPem, reconnectAfterMs });
  open.push(channel);
  return createClient(RackService, channel, { repeats: { clock, random, ...more } });
}

const away = () => unavailable('STORE_UNAVAILABLE', 'The store is away.');
const kindOf = (error: unknown) => (error instanceof ApiFailure ? error.error.kind : error);
const failed = (call: Promise<unknown>) => call.then(() => 'answered', kindOf);

test('a read goes on when the server comes back', async () => {
  const first = await start();
  const { port } = first.server;
  const back = Promise.withResolvers<void>();
  let repeats = 0;
  const onRepeat = () => {
    repeats += 1;
    // It is back once the client has noticed twice that it is away.
    if (repeats === 2) void start([], port).then(() => back.resolve());
  };
  const client = clientAt(port, { onRepeat });
  await client.getRack({ name: 'racks/r1' });
  await first.server.close();
  expect((await client.getRack({ name: 'racks/r1' })).name).toBe('racks/r1');
  await back.promise;
  expect(repeats).toBeGreaterThanOrEqual(2);
});

test('a read is repeated while the server says that it is unavailable, and only then', async () => {
  const { server, calls } = await start([away(), away()]);
  const client = clientAt(server.port);
  expect((await client.getRack({})).name).toBe('racks/r1');
  expect(calls.reads).toBe(3);
  const others = await start([new ApiFailure({ kind: 'cancelled', message: '', reason: 'X' })]);
  expect(await failed(clientAt(others.server.port).getRack({}))).toBe('cancelled');
  expect(others.calls.reads).toBe(1);
});

test('a write is never repeated, nor a read whose caller did not ask for it', async () => {
  const { server, calls } = await start([away(), away()]);
  const client = clientAt(server.port);
  expect(await failed(client.freezeRack({}))).toBe('unavailable');
  expect(await failed(client.getRack({}, { repeats: undefined as never }))).toBe('unavailable');
  expect(calls).toEqual({ reads: 1, writes: 1 });
});

test('the tries end at the deadline of the call, at Ctrl-C, and after a limit', async () => {
  const { server, calls } = await start(Array.from({ length: 50 }, away));
  const quick = {
    nowMs: () => clock.nowMs(),
    after: (_ms: number, run: () => void) => clock.after(1, run),
  };
  const client = clientAt(server.port, { clock: quick });
  expect(await failed(client.getRack({}))).toBe('unavailable');
  expect(calls.reads).toBe(triesMax);
  calls.reads = 0;
  const deadlineMs = clock.nowMs() + 100;
  expect(await failed(client.getRack({}, { deadlineMs }))).not.toBe('answered');
  expect(calls.reads).toBeLessThanOrEqual(1);
  const stopping = new AbortController();
  const onRepeat = () => stopping.abort();
  const stopped = clientAt(server.port, { onRepeat });
  expect(await failed(stopped.getRack({}, { signal: stopping.signal }))).toBe('cancelled');
});

test('pauses grow, are shorter by chance, and follow the server within bounds', () => {
  const longest = [1, 2, 3, 4, 5, 6].map((failures) => pauseBefore(away(), failures, 1));
  expect(longest).toEqual([250, 500, 1_000, 2_000, 2_000, undefined]);
  expect(pauseBefore(away(), 3, 0)).toBe(500);
  expect(pauseBefore(unavailable('BUSY', 'Later.', 1_500), 1, 0)).toBe(1_500);
  expect(pauseBefore(unavailable('BUSY', 'Much later.', 60_000), 1, 0)).toBeUndefined();
  expect(pauseBefore(new Error('defect'), 1, 0)).toBeUndefined();
});
