import { BurnInKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { NetworkCard } from '../machine/burn-in-machine.ts';
import type { ExchangeOutcome, ExchangePayload } from '../session/exchange.ts';
import type { StepContext } from '../steps/step.ts';
import { runStep } from '../steps/steps.fixture.ts';
import { keptOf, on } from './burn-in.fixture.ts';
import { burnInNetwork } from './network.ts';

const mib = 1024 * 1024;

function card(name: string, change: Partial<NetworkCard> = {}): NetworkCard {
  const bytes = { receivedBytes: 5_000, sentBytes: 7_000 };
  return {
    ...{ name, linkMbps: 1_000, ...bytes, receiveErrors: 3, sendErrors: 0, linkChanges: 1 },
    ...change,
  };
}

/** All of it is moved at 20 MB/s. */
function done({ bytes }: ExchangePayload): ExchangeOutcome {
  const moved = { bytes, ms: bytes / 20_000 };
  return { kind: 'done', sent: moved, received: moved };
}

function changed({ bytes }: ExchangePayload, problem: string): ExchangeOutcome {
  const moved = { bytes, ms: bytes / 20_000 };
  return { kind: 'changed', sent: moved, received: moved, problem };
}

/** Cards as they are before and after, and the result of each exchange; the last one repeats. */
async function burn(
  after: readonly NetworkCard[],
  given: Record<string, string> = {},
  ends: readonly ((wanted: ExchangePayload) => ExchangeOutcome)[] = [done],
  more: Partial<StepContext> = {},
) {
  const looks = [[card('eno1'), card('eno2')], after];
  const asked: number[] = [];
  const exchange = async (wanted: ExchangePayload): Promise<ExchangeOutcome> => {
    const end = ends[Math.min(asked.length, ends.length - 1)] ?? done;
    asked.push(wanted.bytes);
    return end(wanted);
  };
  const context = on({ networkCards: async () => looks.shift() ?? [] }, { exchange, ...more });
  const end = await runStep(burnInNetwork, { size: '100', ...given }, undefined, context).end;
  return { end, asked, kept: keptOf(end) };
}

const carried = (change: Partial<NetworkCard> = {}) =>
  card('eno1', { receivedBytes: 110 * mib, sentBytes: 110 * mib, ...change });

test('the card that carried the bytes passes, and others are not told of', async () => {
  const { end, asked, kept } = await burn([carried(), card('eno2', { receiveErrors: 900 })]);
  expect(end.result.kind).toBe('complete');
  expect(asked).toEqual([64 * mib, 36 * mib]);
  expect(kept).toMatchObject({ kind: BurnInKind.NETWORK, passed: true, problem: '' });
  const rates = { writtenPerSecond: 20_000_000n, readPerSecond: 20_000_000n };
  const all = { bytes: BigInt(100 * mib), passes: 2n, errors: 0n, linkMbps: 1_000, ...rates };
  expect(kept?.parts).toMatchObject([{ name: 'eno1', finding: '', ...all }]);
});

test.each<[Partial<NetworkCard>, Record<string, string>, string]>([
  [{ receiveErrors: 5 }, {}, 'eno1: 2 errors counted by the kernel'],
  [{ sendErrors: 1 }, {}, 'eno1: 1 error counted by the kernel'],
  [{ linkChanges: 3 }, {}, 'eno1: its link came or went 2 times'],
  [{ linkMbps: 100 }, { link_min: '1000' }, 'eno1: its link has 100 Mbit/s'],
  [{}, { rate_min: '25' }, 'eno1: sends 20 MB/s, receives 20 MB/s'],
])('a card with %o fails with a defect', async (change, given, problem) => {
  const { end, kept } = await burn([carried(change)], given);
  expect(end.result).toMatchObject({ kind: 'failed', type: 'hardwareDefect', message: problem });
  expect(kept).toMatchObject({ passed: false, problem });
});

test('bytes that arrive changed are found, also where no card is known to carry them', async () => {
  const wrong = (wanted: ExchangePayload) => changed(wanted, 'what was sent arrived changed');
  const { end, kept } = await burn([], {}, [wrong, done]);
  const problem = 'network: 1 wrong exchange: what was sent arrived changed';
  expect(end.result).toMatchObject({ type: 'hardwareDefect', message: problem });
  expect(kept?.parts).toMatchObject([{ name: 'network', errors: 1n }]);
});

test('a burn-in waits for its slot at the agent, and outlasts a broken connection', async () => {
  const wait = (): ExchangeOutcome => ({ kind: 'wait', reason: 'waits for others' });
  const broken = (): ExchangeOutcome => ({ kind: 'broken', reason: 'reset' });
  const told: string[] = [];
  const progress = (_: number, text: string): void => void told.push(text);
  const { end, asked } = await burn([carried()], {}, [wait, broken, done], {
    reportProgress: progress,
  });
  expect(end.result.kind).toBe('complete');
  expect(asked).toHaveLength(4);
  expect(told.slice(0, 2)).toEqual(['waits for others', 'reset']);
});

test.each<[string, ExchangeOutcome, { type: string; message: string }]>([
  [
    'breaks each time',
    { kind: 'broken', reason: 'reset' },
    {
      type: 'exchangeFailed',
      message: '5 exchanges in a row broke: reset; 0 of 100 MiB were exchanged',
    },
  ],
  [
    'never gets its slot',
    { kind: 'wait', reason: 'waits' },
    { type: 'deadline', message: 'its time was over: 0 of 100 MiB were exchanged' },
  ],
  ['is refused', { kind: 'refused', reason: 'no' }, { type: 'exchangeFailed', message: 'no' }],
])('a card that %s has no defect', async (_, exchanged, wanted) => {
  const { end } = await burn([card('eno1')], { duration: '1m' }, [() => exchanged]);
  expect(end.result).toMatchObject({ kind: 'failed', ...wanted });
});

test.each([{ size: '0' }, { size: '16385' }, { duration: '10' }, { rate_min: '26' }, { x: '1' }])(
  'the arguments %o are refused',
  async (given) => {
    expect((await burn([], given)).end.result).toMatchObject({ type: 'invalidArgument' });
  },
);
