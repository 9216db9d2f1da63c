/** What clients do to the TFTP server on loopback: they vanish, repeat themselves, and move. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import {
  decodePacket,
  encodePacket,
  type TftpLimits,
  type TftpOption,
  type TftpPacket,
} from '@rackwright/tftp';
import { afterEach, expect, test } from 'vitest';
import { fetchByTftp, openMailbox } from './test-clients.ts';
import { type BootRig, startRig } from './test-rig.ts';

const silenceMs = 150;
const sizes = [0, 1, 7, 8, 9, 511, 512, 513, 1_024, 1_468, 2_936, 8 * 65_540 + 3];
const loaders = Object.fromEntries(sizes.map((size) => [`f${size}`, size]));
const long = 'f524323';

let rig: BootRig;

afterEach(() => rig.close());

async function serve(limits: Partial<TftpLimits> = {}): Promise<void> {
  const tftp = { address: '127.0.0.1', port: 0, limits };
  rig = await startRig({ loaders, config: { tftp } });
}

interface Client {
  /** Asks again; its later packets go to the server that answers. */
  ask(fileName: string, ...options: TftpOption[]): void;
  say(packet: TftpPacket): void;
  /** The next packet, or undefined when none comes in time. */
  hear(waitMs?: number): Promise<TftpPacket | undefined>;
  serverPort(): number;
  close(): void;
}

async function openClient(): Promise<Client> {
  const mailbox = await openMailbox();
  let port = rig.services.tftpPort;
  return {
    ask(fileName, ...options) {
      const request = { kind: 'readRequest', fileName, mode: 'octet', options } as const;
      mailbox.send(encodePacket(request), rig.services.tftpPort);
    },
    say: (packet) => mailbox.send(encodePacket(packet), port),
    async hear(waitMs = 2_000) {
      const arrived = await mailbox.next(waitMs);
      if (arrived === undefined) return undefined;
      port = arrived.from.port;
      return decodePacket(arrived.datagram);
    },
    serverPort: () => port,
    close: () => mailbox.close(),
  };
}

const ack = (block: number): TftpPacket => ({ kind: 'ack', block });
const isBlock = (block: number) => expect.objectContaining({ kind: 'data', block });

test('a packet from another port is refused by the kernel, and the transfer goes on', async () => {
  await serve();
  const client = await openClient();
  client.ask(long);
  await client.hear();
  const stranger = createSocket('udp4');
  stranger.connect(client.serverPort(), '127.0.0.1');
  await once(stranger, 'connect');
  for (const packet of [ack(1), { kind: 'error', code: 0, message: 'stop' } as const]) {
    // Each is refused before the next is sent, which the refusal would keep from being sent.
    const refused = once(stranger, 'error');
    stranger.send(encodePacket(packet));
    expect(await refused).toMatchObject([{ code: 'ECONNREFUSED' }]);
  }
  expect(await client.hear(silenceMs)).toBeUndefined();
  client.say(ack(1));
  expect(await client.hear()).toEqual(isBlock(2));
  stranger.close();
  client.close();
});

test('a client that moves to another port goes on from where it was, or asks again', async () => {
  await serve();
  const [before, after] = [await openClient(), await openClient()];
  before.ask(long);
  await before.hear();
  after.ask(long);
  expect(await after.hear()).toEqual(isBlock(1));
  before.say(ack(1));
  expect(await before.hear()).toEqual(isBlock(2));
  expect(rig.services.transfers()).toBe(2);
  before.close();
  after.close();
});

test('a client that never answers gets three packets, and its slot is free after', async () => {
  await serve({ retryDelayMs: 50, transfersPerClientMax: 1 });
  const [silent, next] = [await openClient(), await openClient()];
  // RFC 2349 lets it ask for a wait of minutes; that does not count before it has answered.
  silent.ask(long, ['timeout', '30']);
  expect(await silent.hear()).toMatchObject({ kind: 'optionAck' });
  next.ask('f1');
  expect(await next.hear()).toMatchObject({ kind: 'error', code: 0 });
  expect(await silent.hear()).toMatchObject({ kind: 'optionAck' });
  expect(await silent.hear()).toMatchObject({ kind: 'optionAck' });
  await expect.poll(() => rig.services.transfers()).toBe(0);
  next.ask('f1');
  expect(await next.hear()).toEqual(isBlock(1));
  expect(await silent.hear(silenceMs)).toBeUndefined();
  silent.close();
  next.close();
});

test('a client that was slow to answer asks again and is served', async () => {
  await serve({ retryDelayMs: 1, openingAttemptsMax: 1 });
  const client = await openClient();
  client.ask(long);
  await client.hear();
  await expect.poll(() => rig.services.transfers()).toBe(0);
  client.say(ack(1));
  expect(await client.hear(silenceMs)).toBeUndefined();
  client.ask(long);
  expect(await client.hear()).toEqual(isBlock(1));
  client.say(ack(1));
  expect(await client.hear()).toEqual(isBlock(2));
  client.close();
});

test.each([
  ['before it is answered', 0],
  ['after its first block', 1],
  ['in the midst of windows', 20],
])('a client that has gone %s frees its slot at the next packet to it', async (_when, blocks) => {
  // With these a silent client would be waited for a minute and more.
  await serve({ retryDelayMs: 100, openingAttemptsMax: 9, attemptsMax: 9, refusedDelayMs: 50 });
  const client = await openClient();
  client.ask(long, ['windowsize', '4']);
  for (let block = 0; block < blocks; block += 4) {
    await client.hear();
    client.say(ack(block));
  }
  if (blocks > 0) await client.hear();
  client.close();
  await expect.poll(() => rig.services.transfers(), { timeout: 30_000 }).toBe(0);
});

test('a lost packet is sent again', async () => {
  await serve({ retryDelayMs: 50 });
  const client = await openClient();
  client.ask(long, ['windowsize', '2'], ['blksize', '8']);
  const lost = await client.hear();
  expect(await client.hear()).toEqual(lost);
  client.say(ack(0));
  for (let times = 0; times < 3; times += 1) {
    expect(await client.hear()).toEqual(isBlock(1));
    expect(await client.hear()).toEqual(isBlock(2));
  }
  // Block 2 was sent three times; an acknowledgement alone does not cause it a fourth time.
  client.say(ack(1));
  expect(await client.hear()).toEqual(isBlock(3));
  expect(await client.hear()).toEqual(isBlock(2));
  expect(await client.hear()).toEqual(isBlock(3));
  client.close();
});

test('a request and acknowledgements that come twice are answered once', async () => {
  await serve();
  const client = await openClient();
  for (let times = 0; times < 3; times += 1) client.ask(long, ['blksize', '1468']);
  expect(await client.hear()).toMatchObject({ kind: 'optionAck' });
  expect(await client.hear(silenceMs)).toBeUndefined();
  expect(rig.services.transfers()).toBe(1);
  for (let block = 0; block < 5; block += 1) {
    for (let times = 0; times < 3; times += 1) client.say(ack(block));
    expect(await client.hear()).toEqual(isBlock(block + 1));
  }
  expect(await client.hear(silenceMs)).toBeUndefined();
  client.close();
});

test('a window that is larger than the file ends with the file', async () => {
  await serve();
  const client = await openClient();
  client.ask('f513', ['windowsize', '16']);
  await client.hear();
  client.say(ack(0));
  expect(await client.hear()).toEqual(isBlock(1));
  expect(await client.hear()).toEqual(isBlock(2));
  client.say(ack(2));
  expect(await client.hear(silenceMs)).toBeUndefined();
  expect(rig.services.transfers()).toBe(0);
  client.close();
});

test.each(
  sizes.flatMap((size) => {
    const blocks = size > 10_000 ? ['8'] : ['8', '512', '1468'];
    return blocks.map((blksize) => ({ size, blksize }));
  }),
)('$size bytes arrive in blocks of $blksize', async ({ size, blksize }) => {
  await serve();
  const options: TftpOption[] = [
    ['blksize', blksize],
    ['windowsize', '16'],
  ];
  const bytes = await fetchByTftp(rig.services.tftpPort, `f${size}`, options);
  expect(Buffer.compare(bytes, rig.contents[`f${size}`] ?? new Uint8Array())).toBe(0);
});

test('3,000 transfers, ended, aborted and abandoned, leave no socket and no timer', async () => {
  await serve({ transfersPerClientMax: 256, retryDelayMs: 50, refusedDelayMs: 50 });
  const countOf = (kind: string): number =>
    process.getActiveResourcesInfo().filter((one) => one === kind).length;
  const before = { sockets: countOf('UDPWRAP'), timers: countOf('Timeout') };
  for (let round = 0; round < 60; round += 1) {
    const ends = Array.from({ length: 50 }, async (_, index) => {
      if (index % 5 > 1) return void (await fetchByTftp(rig.services.tftpPort, 'f513'));
      const client = await openClient();
      client.ask(long);
      await client.hear();
      if (index % 5 === 1) client.say({ kind: 'error', code: 0, message: 'aborted' });
      client.close();
    });
    await Promise.all(ends);
  }
  await expect.poll(() => rig.services.transfers()).toBe(0);
  await expect.poll(() => countOf('UDPWRAP')).toBe(before.sockets);
  expect(countOf('Timeout')).toBeLessThanOrEqual(before.timers);
});
