/**
 * All transfers from the port of the requests: which transfer a packet belongs to, and which
 * packets belong to none.
 */
import { nodeClock } from '@rackwright/platform/node';
import {
  decodePacket,
  encodePacket,
  type TftpLimits,
  type TftpOption,
  type TftpPacket,
  tftpLimitsDefault,
  usedPortLimitsDefault,
} from '@rackwright/tftp';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchByTftp, type Mailbox, openMailbox } from './test-clients.ts';
import { type BootRig, startRig } from './test-rig.ts';

const { lateMs } = usedPortLimitsDefault;
const silenceMs = 150;
const loaders = { small: 513, long: 100_000, other: 90_000 };

let rig: BootRig;
let client: Mailbox;
/** What tells how late a packet is; it stands still. */
let nowMs = 0;

beforeEach(async () => {
  client = await openMailbox();
});

afterEach(async () => {
  client.close();
  await rig.close();
});

async function serve(limits: Partial<TftpLimits> = {}): Promise<void> {
  const tftp = { address: '127.0.0.1', port: 0, transferPorts: 'single', limits } as const;
  const clock = { ...nodeClock(), suspendAwareMs: () => nowMs };
  rig = await startRig({ loaders, clock, config: { tftp } });
}

function ask(fileName: string, ...options: TftpOption[]): void {
  say({ kind: 'readRequest', fileName, mode: 'octet', options });
}

function say(packet: TftpPacket, from = client): void {
  from.send(encodePacket(packet), rig.services.tftpPort);
}

/** The next packet, which came from the only port. */
async function hear(waitMs = 5_000, at = client): Promise<TftpPacket | undefined> {
  const arrived = await at.next(waitMs);
  if (arrived === undefined) return undefined;
  expect(arrived.from).toEqual({ address: '127.0.0.1', port: rig.services.tftpPort });
  return decodePacket(arrived.datagram);
}

const ack = (block: number): TftpPacket => ({ kind: 'ack', block });
const data = (name: keyof typeof loaders, block: number) => {
  const bytes = rig.contents[name]?.subarray(512 * (block - 1), 512 * block) ?? [];
  return { kind: 'data', block, bytes: Buffer.from(bytes) };
};

test('files of many clients at once come whole from the port that was asked', async () => {
  await serve({ transfersPerClientMax: 64 });
  const names = Object.keys(loaders).flatMap((name) => Array.from({ length: 10 }, () => name));
  await Promise.all(
    names.map(async (name, index) => {
      const options: TftpOption[] = index % 2 === 0 ? [] : [['windowsize', '8']];
      const bytes = await fetchByTftp(rig.services.tftpPort, name, options);
      expect(Buffer.compare(bytes, rig.contents[name] ?? new Uint8Array()), name).toBe(0);
    }),
  );
  await expect.poll(() => rig.services.transfers()).toBe(0);
});

test('a packet from another port is ignored, and the transfer goes on', async () => {
  await serve();
  ask('long');
  expect(await hear()).toEqual(data('long', 1));
  const stranger = await openMailbox();
  for (const packet of [ack(1), { kind: 'error', code: 0, message: 'stop' } as const]) {
    say(packet, stranger);
  }
  expect(await stranger.next(silenceMs)).toBeUndefined();
  expect(await hear(silenceMs)).toBeUndefined();
  say(ack(1));
  expect(await hear()).toEqual(data('long', 2));
  stranger.close();
});

test('a new request from the same port is served, and the old transfer ends', async () => {
  await serve();
  ask('long');
  await hear();
  say(ack(1));
  expect(await hear()).toEqual(data('long', 2));
  ask('other');
  // Words of the old transfer that were on their way: an acknowledgement, and its error.
  for (const block of [2, 1, 0]) say(ack(block));
  say({ kind: 'error', code: 0, message: 'aborted' });
  await expect.poll(() => rig.services.transfers()).toBe(1);
  expect(await hear()).toEqual(data('other', 1));
  say(ack(1));
  expect(await hear()).toEqual(data('other', 2));
});

test('a late copy of a request begins nothing, and does not end what goes on', async () => {
  await serve();
  ask('long');
  await hear();
  say(ack(1));
  expect(await hear()).toEqual(data('long', 2));
  ask('long');
  say(ack(2));
  expect(await hear()).toEqual(data('long', 3));
  ask('other');
  ask('long');
  expect(await hear()).toEqual(data('other', 1));
});

test('a client that begins again with the same request after a pause is served', async () => {
  await serve({ retryDelayMs: 60_000, retryDelayMsMax: 60_000 });
  ask('long', ['blksize', '1024']);
  expect(await hear()).toMatchObject({ kind: 'optionAck' });
  say(ack(0));
  expect(await hear()).toMatchObject({ kind: 'data', block: 1 });
  nowMs += lateMs + 1;
  ask('long', ['blksize', '1024']);
  say(ack(1));
  expect(await hear()).toMatchObject({ kind: 'optionAck' });
  expect(rig.services.transfers()).toBe(1);
});

test('silent clients give their slots back, and a client has no more than its own', async () => {
  await serve({ retryDelayMs: 50, transfersPerClientMax: 1 });
  ask('long');
  for (let times = 0; times < 3; times += 1) expect(await hear()).toEqual(data('long', 1));
  const next = await openMailbox();
  say({ kind: 'readRequest', fileName: 'small', mode: 'octet', options: [] }, next);
  expect(await hear(5_000, next)).toMatchObject({ kind: 'error', code: 0 });
  await expect.poll(() => rig.services.transfers()).toBe(0);
  say({ kind: 'readRequest', fileName: 'small', mode: 'octet', options: [] }, next);
  expect(await hear(5_000, next)).toEqual(data('small', 1));
  next.close();
});

test('one acknowledgement, which anybody may forge, brings a window of small blocks', async () => {
  await serve({ retryDelayMs: 60_000, retryDelayMsMax: 60_000 });
  const { blockBytesMax, windowBlocksMax } = tftpLimitsDefault;
  for (const options of [{ windowsize: '65535' }, { windowsize: '65535', blksize: '65464' }]) {
    ask('long', ...Object.entries(options));
    expect(await hear()).toMatchObject({ kind: 'optionAck' });
    say(ack(0));
    const blocks: number[] = [];
    for (let heard = await hear(); heard?.kind === 'data'; heard = await hear(silenceMs)) {
      blocks.push(heard.bytes.length);
    }
    expect(blocks).toHaveLength(windowBlocksMax);
    expect(Math.max(...blocks)).toBeLessThanOrEqual(blockBytesMax);
  }
});

test('many addresses with few transfers each share the limit on all transfers', async () => {
  const limits = { transfersMax: 3, transfersPerClientMax: 2 };
  await serve({ ...limits, retryDelayMs: 60_000, retryDelayMsMax: 60_000 });
  const all = [];
  for (const n of [1, 2, 3, 4, 5]) all.push(await openMailbox(`127.0.8.${n}`));
  const request = { kind: 'readRequest', fileName: 'long', mode: 'octet', options: [] } as const;
  for (const each of all) say(request, each);
  expect(await hear(5_000, all[2])).toEqual(data('long', 1));
  // Requests beyond the bound get no answer: a forged request is not worth one.
  for (const each of all.slice(3)) expect(await hear(silenceMs, each)).toBeUndefined();
  expect(rig.services.transfers()).toBe(3);
  if (all[0] !== undefined) say({ kind: 'error', code: 0, message: 'aborted' }, all[0]);
  await expect.poll(() => rig.services.transfers()).toBe(2);
  if (all[4] !== undefined) say(request, all[4]);
  expect(await hear(5_000, all[4])).toEqual(data('long', 1));
  for (const each of all) each.close();
});

test('mangled packets are ignored, and a first packet that is no request is refused', async () => {
  await serve();
  ask('long');
  await hear();
  client.send(new Uint8Array([0, 4, 0]), rig.services.tftpPort);
  client.send(new Uint8Array([9, 9]), rig.services.tftpPort);
  expect(await hear(silenceMs)).toBeUndefined();
  say(ack(1));
  expect(await hear()).toEqual(data('long', 2));
  const stranger = await openMailbox();
  say({ kind: 'writeRequest', fileName: 'small', mode: 'octet', options: [] }, stranger);
  expect(await hear(5_000, stranger)).toMatchObject({ kind: 'error', code: 2 });
  stranger.close();
});

test('a packet of another server to the same port number does not arrive', async () => {
  await serve();
  const elsewhere = await openMailbox('127.0.0.1');
  elsewhere.send(encodePacket(ack(7)), client.port, '127.0.0.1');
  expect(await hear(silenceMs)).toBeUndefined();
  elsewhere.close();
});
