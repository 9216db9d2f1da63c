import fc from 'fast-check';
import { expect, test } from 'vitest';
import { negotiate } from './options.ts';
import { type DatagramParts, decodePacket, type TftpOption, type TftpPacket } from './packet.ts';
import { Transfer, type TransferEnd, type TransferStep } from './transfer.ts';

const retry = {
  ...{ retryDelayMs: 1_000, retryDelayMsMax: 8_000, refusedDelayMs: 200 },
  ...{ attemptsMax: 6, openingAttemptsMax: 3 },
};
const limits = { blockBytesMax: 1468, windowBlocksMax: 16, timeoutSecondsMax: 30 };

function content(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 9)) & 0xff);
}

/** A client that would wait for ever. */
const patient = { ...retry, attemptsMax: 100, openingAttemptsMax: 100 };

function transferOf(file: Uint8Array, ...asked: TftpOption[]): Transfer {
  return new Transfer(file, negotiate(asked, file.length, limits), retry);
}

function ack(block: number): TftpPacket {
  return { kind: 'ack', block };
}

function packetOf(datagram: DatagramParts | undefined): TftpPacket {
  return decodePacket(Buffer.concat(datagram ?? []));
}

/** Block numbers of the DATA packets in a step. */
function blocks(step: TransferStep): number[] {
  return step.sends.map((datagram) => {
    const packet = packetOf(datagram);
    return packet.kind === 'data' ? packet.block : -1;
  });
}

/**
 * Fetches as a client that loses nothing, acknowledging once per window. Throws after `stepsMax`: a
 * transfer that sends the same again for ever would hold its test for ever.
 */
function fetchAll(
  transfer: Transfer,
  windowBlocks: number,
  stepsMax = 10_000,
): { bytes: number[]; end: TransferEnd } {
  const bytes: number[] = [];
  let step = transfer.start();
  for (let steps = 0; steps < stepsMax; steps += 1) {
    let last = 0;
    for (const datagram of step.sends) {
      const packet = packetOf(datagram);
      if (packet.kind === 'data') {
        bytes.push(...packet.bytes);
        last = packet.block;
      }
    }
    expect(step.sends.length).toBeLessThanOrEqual(windowBlocks);
    step = transfer.receive(ack(last));
    if (step.end !== undefined) return { bytes, end: step.end };
  }
  throw new Error(`no end after ${stepsMax} windows, ${bytes.length} bytes`);
}

test.each([
  [0, 1],
  [511, 1],
  [512, 2],
  [513, 2],
  [1024, 3],
])('the server sends a file of %i bytes in %i blocks', (length, expectedBlocks) => {
  const transfer = transferOf(content(length));
  let step = transfer.start();
  for (let block = 1; block < expectedBlocks; block += 1) {
    expect(blocks(step)).toEqual([block]);
    step = transfer.receive(ack(block));
  }
  expect(blocks(step)).toEqual([expectedBlocks]);
  expect(transfer.receive(ack(expectedBlocks)).end).toEqual({ kind: 'complete' });
});

test('the server rolls block numbers over to 0 and goes on', () => {
  const file = content(8 * 65_540 + 3);
  const { bytes, end } = fetchAll(transferOf(file, ['blksize', '8'], ['windowsize', '16']), 16);
  expect(end).toEqual({ kind: 'complete' });
  expect(Buffer.from(bytes).equals(Buffer.from(file))).toBe(true);
});

test('the server waits for block 0 to be acknowledged after an option acknowledgement', () => {
  const transfer = transferOf(content(20), ['blksize', '8']);
  expect(packetOf(transfer.start().sends[0])).toEqual({
    kind: 'optionAck',
    options: [['blksize', '8']],
  });
  expect(transfer.receive(ack(1)).sends).toEqual([]);
  expect(transfer.answered).toBe(false);
  expect(blocks(transfer.receive(ack(0)))).toEqual([1]);
  expect(transfer.answered).toBe(true);
});

test('the server repeats what is unanswered, ever more slowly, and then gives up', () => {
  const transfer = transferOf(content(1_100));
  transfer.start();
  const waits = [transfer.receive(ack(1)).timerMs];
  for (let attempt = 2; attempt <= retry.attemptsMax; attempt += 1) {
    const step = transfer.timeout();
    expect(blocks(step)).toEqual([2]);
    waits.push(step.timerMs);
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  expect(transfer.timeout().end).toEqual({ kind: 'timedOut', blocksAcknowledged: 1 });
  expect(transfer.timeout()).toEqual({ sends: [] });
});

test.each([
  ['its first block', []],
  ['the options', [['timeout', '30']]],
] as const)('a client that never acknowledges %s is given up after 7 seconds', (_what, asked) => {
  const transfer = transferOf(content(700), ...asked);
  const waits: (number | undefined)[] = [];
  let step = transfer.start();
  for (; step.end === undefined; step = transfer.timeout()) waits.push(step.timerMs);
  expect(waits).toEqual([1_000, 2_000, 4_000]);
  expect(step.end).toEqual({ kind: 'timedOut', blocksAcknowledged: 0 });
});

test('an acknowledgement of the options alone earns all attempts', () => {
  const transfer = transferOf(content(700), ['blksize', '512']);
  transfer.start();
  transfer.timeout();
  transfer.timeout();
  transfer.receive(ack(0));
  for (let attempt = 2; attempt <= retry.attemptsMax; attempt += 1) {
    expect(blocks(transfer.timeout())).toEqual([1]);
  }
  expect(transfer.timeout().end).toMatchObject({ kind: 'timedOut' });
});

test.each([
  [1, 3],
  [2, 4],
  [4, 6],
  [8, 6],
])('a request that may have come to %i addresses is answered %i times', (addresses, times) => {
  const transfer = transferOf(content(700));
  let sent = 0;
  let step = transfer.start(addresses);
  for (; step.end === undefined; step = transfer.timeout()) sent += 1;
  expect(sent).toBe(times);
});

test('the server waits as long as the client asked, each time', () => {
  const transfer = transferOf(content(700), ['timeout', '3']);
  transfer.start();
  expect(transfer.receive(ack(0)).timerMs).toBe(3_000);
  expect(transfer.timeout().timerMs).toBe(3_000);
});

test('a port that is refused twice, a repetition between, is given up', () => {
  const transfer = transferOf(content(50_000), ['windowsize', '4']);
  transfer.start();
  transfer.receive(ack(0));
  expect(transfer.refused()).toEqual({ sends: [], timerMs: retry.refusedDelayMs });
  // Each block of the window that was refused tells it again.
  expect(transfer.refused()).toEqual({ sends: [] });
  expect(blocks(transfer.timeout())).toEqual([1, 2, 3, 4]);
  expect(transfer.refused()).toEqual({
    sends: [],
    end: { kind: 'refused', blocksAcknowledged: 0 },
  });
  expect(transfer.refused()).toEqual({ sends: [] });
});

test('an unreachable port that a later acknowledgement disproves costs one repetition', () => {
  const transfer = transferOf(content(50_000));
  transfer.start();
  for (let block = 1; block < 20; block += 1) {
    transfer.refused();
    expect(blocks(transfer.timeout())).toEqual([block]);
    expect(blocks(transfer.receive(ack(block)))).toEqual([block + 1]);
  }
});

test('a client that hears one of several addresses may refuse each of the others', () => {
  const transfer = transferOf(content(50_000));
  transfer.start(3);
  for (let address = 1; address <= 3; address += 1) {
    expect(transfer.refused().timerMs).toBe(retry.refusedDelayMs);
    expect(blocks(transfer.timeout())).toEqual([1]);
  }
  expect(transfer.refused().end).toMatchObject({ kind: 'refused' });
});

test('the server starts counting attempts again with each block that gets through', () => {
  const transfer = transferOf(content(3 * 512));
  transfer.start();
  for (let block = 1; block <= 3; block += 1) {
    const attemptsMax = block === 1 ? retry.openingAttemptsMax : retry.attemptsMax;
    for (let attempt = 1; attempt < attemptsMax; attempt += 1) {
      expect(transfer.timeout().end).toBeUndefined();
    }
    transfer.receive(ack(block));
  }
  expect(transfer.receive(ack(4)).end).toEqual({ kind: 'complete' });
});

test('a duplicate acknowledgement sends nothing: no Sorcerer’s Apprentice', () => {
  const transfer = transferOf(content(5_000));
  transfer.start();
  expect(blocks(transfer.receive(ack(1)))).toEqual([2]);
  expect(transfer.receive(ack(1))).toEqual({ sends: [] });
  expect(transfer.receive(ack(0))).toEqual({ sends: [] });
  expect(blocks(transfer.receive(ack(2)))).toEqual([3]);
});

test('with a window, sends again once when the first block in flight was lost', () => {
  const transfer = transferOf(content(5_000), ['windowsize', '4']);
  transfer.start();
  expect(blocks(transfer.receive(ack(0)))).toEqual([1, 2, 3, 4]);
  expect(blocks(transfer.receive(ack(4)))).toEqual([5, 6, 7, 8]);
  expect(blocks(transfer.receive(ack(4)))).toEqual([5, 6, 7, 8]);
  expect(transfer.receive(ack(4))).toEqual({ sends: [] });
});

test('with a window, goes on after the block that the client got last', () => {
  const transfer = transferOf(content(5_000), ['windowsize', '4']);
  transfer.start();
  transfer.receive(ack(0));
  expect(blocks(transfer.receive(ack(2)))).toEqual([3, 4, 5, 6]);
});

test('with a window, one late answer does not double all the windows after it', () => {
  const transfer = transferOf(content(50_000), ['windowsize', '4']);
  transfer.start();
  transfer.receive(ack(0));
  expect(blocks(transfer.timeout())).toEqual([1, 2, 3, 4]);
  expect(blocks(transfer.receive(ack(4)))).toEqual([5, 6, 7, 8]);
  expect(transfer.receive(ack(4))).toEqual({ sends: [] });
  expect(blocks(transfer.receive(ack(8)))).toEqual([9, 10, 11, 12]);
  expect(blocks(transfer.receive(ack(8)))).toEqual([9, 10, 11, 12]);
});

test('the server ignores acknowledgements of what was never sent', () => {
  const transfer = transferOf(content(5_000), ['windowsize', '4']);
  transfer.start();
  transfer.receive(ack(0));
  for (const block of [5, 6, 0x8000, 0xffff]) {
    expect(transfer.receive(ack(block))).toEqual({ sends: [] });
  }
});

test('the abort of EDK2 after the size is an abort, not a failure', () => {
  const transfer = transferOf(content(5_000), ['tsize', '0']);
  transfer.start();
  const abort: TftpPacket = { kind: 'error', code: 8, message: 'User aborted' };
  expect(transfer.receive(abort).end).toEqual({ kind: 'aborted', message: 'User aborted' });
});

test('the server reports an error of the client as such', () => {
  const transfer = transferOf(content(5_000));
  transfer.start();
  expect(transfer.receive({ kind: 'error', code: 3, message: 'disk full' }).end).toEqual({
    kind: 'clientError',
    code: 3,
    message: 'disk full',
  });
});

test('the server refuses data from a client that reads', () => {
  const transfer = transferOf(content(5_000));
  transfer.start();
  const step = transfer.receive({ kind: 'data', block: 1, bytes: new Uint8Array() });
  expect(step.end?.kind).toBe('protocolError');
  expect(packetOf(step.sends[0])).toMatchObject({ kind: 'error', code: 4 });
});

/** What the network does with each packet, in order. */
type Fate = 'deliver' | 'lose' | 'duplicate' | 'delay';

/** A receiver as RFC 7440 §4 describes it. */
class Receiver {
  readonly bytes: number[] = [];
  #expected = 1;
  #sinceAck = 0;
  done = false;

  readonly #blockBytes: number;
  readonly #windowBlocks: number;

  constructor(blockBytes: number, windowBlocks: number) {
    this.#blockBytes = blockBytes;
    this.#windowBlocks = windowBlocks;
  }

  /** The acknowledgement to send, or undefined. */
  take(packet: TftpPacket): TftpPacket | undefined {
    if (packet.kind === 'optionAck') return ack(0);
    if (packet.kind !== 'data') return undefined;
    if (packet.block !== (this.#expected & 0xffff)) {
      this.#sinceAck = 0;
      return ack((this.#expected - 1) & 0xffff);
    }
    this.bytes.push(...packet.bytes);
    this.#expected += 1;
    this.#sinceAck += 1;
    this.done ||= packet.bytes.length < this.#blockBytes;
    if (!this.done && this.#sinceAck < this.#windowBlocks) return undefined;
    this.#sinceAck = 0;
    return ack(packet.block);
  }
}

test('the server delivers every byte in order through loss, duplication and reordering', () => {
  const fates = fc.array(
    fc.constantFrom<Fate>('deliver', 'deliver', 'lose', 'duplicate', 'delay'),
    {
      maxLength: 60,
    },
  );
  const file = content(700);
  fc.assert(
    fc.property(fates, fc.integer({ min: 1, max: 5 }), (network, windowBlocks) => {
      const asked: TftpOption[] = [
        ['blksize', '16'],
        ['windowsize', String(windowBlocks)],
      ];
      const transfer = new Transfer(file, negotiate(asked, file.length, limits), patient);
      const receiver = new Receiver(16, windowBlocks);
      const { packetsSent, timeouts } = run(transfer, receiver, network);
      expect(Buffer.from(receiver.bytes).equals(Buffer.from(file))).toBe(true);
      // 44 blocks at most twice each, the OACK, and one window whenever the timer fires.
      expect(packetsSent).toBeLessThanOrEqual(1 + 2 * 44 + timeouts * windowBlocks);
    }),
    { numRuns: 400 },
  );
});

/** Plays a transfer to its end; the timer fires whenever nothing is under way. */
function run(
  transfer: Transfer,
  receiver: Receiver,
  network: readonly Fate[],
): { packetsSent: number; timeouts: number } {
  const toClient = [...transfer.start().sends];
  const late: DatagramParts[] = [];
  let packetsSent = toClient.length;
  let timeouts = 0;
  for (let events = 0; events < 5_000; events += 1) {
    const datagram = toClient.shift() ?? late.shift();
    let step: TransferStep;
    if (datagram === undefined) {
      timeouts += 1;
      step = transfer.timeout();
    } else {
      step = deliver(transfer, receiver, datagram, network[events] ?? 'deliver', late);
    }
    toClient.push(...step.sends);
    packetsSent += step.sends.length;
    if (step.end !== undefined) return { packetsSent, timeouts };
  }
  throw new Error('the transfer did not end');
}

function deliver(
  transfer: Transfer,
  receiver: Receiver,
  datagram: DatagramParts,
  fate: Fate,
  late: DatagramParts[],
): TransferStep {
  if (fate === 'lose') return { sends: [] };
  if (fate === 'delay') {
    late.push(datagram);
    return { sends: [] };
  }
  const packet = packetOf(datagram);
  const answer = receiver.take(packet);
  let step: TransferStep = answer === undefined ? { sends: [] } : transfer.receive(answer);
  if (fate === 'duplicate' && step.end === undefined) {
    const again = receiver.take(packet);
    const more: TransferStep = again === undefined ? { sends: [] } : transfer.receive(again);
    step = { ...more, sends: [...step.sends, ...more.sends] };
  }
  return step;
}
