/**
 * A rack's agent that says more than its rack may, over real TLS: what the control plane reads of
 * it is counted against the configured rate, and another rack is answered meanwhile. A slow machine
 * makes the counts smaller, never larger.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { type Fixture, startFixture } from '@rackwright/controlplane/testing';
import { agent, type RackId } from '@rackwright/messages';
import { afterEach, expect, test } from 'vitest';
import { type Credentials, enrol } from '../bench/agents/lean-agent.ts';
import { AgentStream } from '../e2e/hostile-agent-site.ts';

const timeout = 120_000;
const logBytes = 4_000;
/** Messages of one attack: without its rate, all are answered within seconds. */
const flood = 200;
const floodSeconds = 4;

let fixture: Fixture | undefined;
const streams: AgentStream[] = [];

afterEach(async () => {
  for (const { stream } of streams.splice(0)) stream.cut();
  await fixture?.stop();
  fixture = undefined;
});

/** A control plane with these limits of a rack, and the agents of two racks. */
async function site(limits: Readonly<Record<string, number>>) {
  const agents = { address: '127.0.0.1', port: 0, advertise: 'cp.example:7441', limits };
  const started = await startFixture({ config: { agents } });
  fixture = started;
  const join = async (rackId: RackId): Promise<Credentials> => {
    const rack = { spec: { discovery: { enabled: true } } };
    await started.racks.createRack({ rackId, rack });
    const { token } = await started.racks.createJoinToken({ rack: `racks/${rackId}` });
    return enrol(started.channel, token);
  };
  const [noisy, quiet] = [await join('noisy'), await join('quiet')];
  const dial = (credentials: Credentials, generation: bigint): AgentStream => {
    const stream = new AgentStream(started.controlPlane.agentsPort, credentials);
    streams.push(stream);
    stream.hello({ id: `journal-${credentials.rackId}`, generation });
    return stream;
  };
  const welcomed = async (credentials: Credentials): Promise<AgentStream> => {
    const stream = dial(credentials, 1n);
    expect(await stream.settled()).toBe(true);
    return stream;
  };
  return { noisy: await welcomed(noisy), quiet: await welcomed(quiet) };
}

const answers = ({ received }: AgentStream, kind: 'leaseRenewal' | 'discoveredAnswer'): number =>
  received.filter((message) => message.case === kind).length;

/**
 * Sends a flood of heartbeats, each behind what `before` sends. After some seconds, or when all are
 * answered: how many are, and how many seconds that took.
 */
async function heartbeats(stream: AgentStream, before: () => void = () => undefined) {
  const already = answers(stream, 'leaseRenewal');
  const begunMs = performance.now();
  const seconds = () => (performance.now() - begunMs) / 1_000;
  const answered = () => answers(stream, 'leaseRenewal') - already;
  for (let n = 0; n < flood; n += 1) {
    before();
    stream.send({ case: 'heartbeat', value: { sequence: BigInt(1_000 + n) } });
  }
  expect(await stream.until(() => answered() === flood || seconds() > floodSeconds)).toBe(true);
  return { answered: answered(), seconds: seconds() };
}

test('a rack that sends messages without end is read at its rate, and no other is slowed', {
  timeout,
}, async () => {
  const { noisy, quiet } = await site({ messagesPerSecond: 2 });
  const { answered, seconds } = await heartbeats(noisy);
  expect(answered).toBeGreaterThan(0);
  // Four seconds' worth is read at once, the others at the rate.
  expect(answered).toBeLessThanOrEqual(2 * (4 + seconds) + 1);
  for (let n = 0; n < 3; n += 1) expect(await quiet.settled()).toBe(true);
});

test('a rack that sends large messages without end is read at its rate in bytes', {
  timeout,
}, async () => {
  const { noisy, quiet } = await site({ bytesPerSecond: 2 * logBytes });
  const value = { hostUid: 'h', operationId: 'h/1', content: Buffer.alloc(logBytes) };
  // A log has been read before each heartbeat that is answered.
  const { answered, seconds } = await heartbeats(noisy, () =>
    noisy.send({ case: 'stepLog', value }),
  );
  expect(answered).toBeGreaterThan(0);
  expect(answered).toBeLessThanOrEqual(2 * (4 + seconds) + 1);
  for (let n = 0; n < 3; n += 1) expect(await quiet.settled()).toBe(true);
});

/** A message that tells of a machine that nobody knows; n up to 255. */
function told(n: number): Uint8Array {
  const mac = `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`;
  const system = { manufacturer: 'Maker', product: 'Box', serial: `SN-${n}` };
  const inventory = { system, interfaces: [{ name: 'eth0', mac }] };
  const value = { id: `f${n}`, bootMac: mac, bmcAddress: '192.0.2.1', inventory };
  const request = create(agent.SessionRequestSchema, { message: { case: 'discovered', value } });
  return toBinary(agent.SessionRequestSchema, request);
}

test('a rack that tells of machines without end has so many compared, and no other waits', {
  timeout,
}, async () => {
  const discoveredPerMinute = 1;
  const { noisy, quiet } = await site({ discoveredPerMinute });
  const begunMs = performance.now();
  // No more than may wait at once, so that only the rate leaves any without an answer.
  for (let sent = 0; sent < flood; sent += 40) {
    for (let n = sent; n < sent + 40; n += 1) noisy.stream.sendBytes(told(n));
    for (let last = -1; last !== answers(noisy, 'discoveredAnswer'); ) {
      last = answers(noisy, 'discoveredAnswer');
      for (let n = 0; n < 5; n += 1) expect(await noisy.settled()).toBe(true);
    }
  }
  const minutes = (performance.now() - begunMs) / 60_000;
  const taken = answers(noisy, 'discoveredAnswer');
  expect(taken).toBeGreaterThan(100);
  expect(taken).toBeLessThanOrEqual(128 + discoveredPerMinute * minutes + 1);
  quiet.stream.sendBytes(told(255));
  expect(await quiet.until(() => answers(quiet, 'discoveredAnswer') === 1)).toBe(true);
});
