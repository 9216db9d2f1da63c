import { createHash } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { runner } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { defaultExchangeLimits, type ExchangeLimits, Exchanges } from './exchange.ts';

type Said = NonNullable<MessageInitShape<typeof runner.ExchangeRequestSchema>['message']>;

const size = 150_000;
const order = {};
const begin = (change: MessageInitShape<typeof runner.ExchangeBeginSchema> = {}): Said => ({
  case: 'begin',
  value: { bootToken: 'token', operationId: 'op', bytes: BigInt(size), ...change },
});
const pieceOf = (length: number): Said => ({
  case: 'piece',
  value: new Uint8Array(length).fill(3),
});
const all = [begin(), pieceOf(65_536), pieceOf(65_536), pieceOf(size - 131_072)];

function exchanges(limits: Partial<ExchangeLimits> = {}): Exchanges {
  return new Exchanges({
    ...{ clock: nodeClock(), random: nodeRandom() },
    limits: { ...defaultExchangeLimits, ...limits },
    orderOf: (token, id) => (token === 'token' && id === 'op' ? order : undefined),
  });
}

/** These messages, and then silence for ever. */
async function* saying(messages: readonly Said[]) {
  for (const message of messages) yield create(runner.ExchangeRequestSchema, { message });
  await new Promise(() => {});
}

async function serve(on: Exchanges, messages: readonly Said[]) {
  const told: NonNullable<MessageInitShape<typeof runner.ExchangeResponseSchema>['message']>[] = [];
  for await (const { message } of on.serve(saying(messages), new AbortController().signal)) {
    if (message !== undefined) told.push(message);
  }
  return told;
}

const cases = (told: Awaited<ReturnType<typeof serve>>) => told.map((each) => each.case);
const why = (told: Awaited<ReturnType<typeof serve>>) => told.map(({ value }) => value);

test('an exchange reports what came, sends as much, and reports its digest', async () => {
  const told = await serve(exchanges(), all);
  expect(cases(told)).toEqual([
    ...['ready', 'receivedSha256', 'piece', 'piece', 'piece', 'sentSha256'],
  ]);
  const sent = told.flatMap((each) => (each.case === 'piece' ? [each.value ?? []] : []));
  const digest = (content: Uint8Array) => createHash('sha256').update(content).digest();
  const bytes = Buffer.concat(sent.map((each) => Uint8Array.from(each)));
  expect(bytes).toHaveLength(size);
  expect(told.at(-1)?.value).toEqual(digest(bytes));
  expect(told[1]?.value).toEqual(digest(Buffer.alloc(size, 3)));
});

test.each<[string, Said[]]>([
  ['ExchangeBegin', [pieceOf(1)]],
  ['no burn-in of the network is ordered', [begin({ bootToken: 'guessed' })]],
  ['no burn-in of the network is ordered', [begin({ operationId: 'other' })]],
  ['bytes has to be from 1', [begin({ bytes: 0n })]],
  ['bytes has to be from 1', [begin({ bytes: 2n ** 63n })]],
])('an exchange is refused with "%s"', async (reason, messages) => {
  const told = await serve(exchanges(), messages);
  expect(cases(told)).toEqual(['refused']);
  expect(why(told)[0]).toContain(reason);
});

test.each<[string, Said[]]>([
  ['an empty piece', [begin(), pieceOf(0)]],
  ['a piece that is too long', [begin(), pieceOf(65_537)]],
  ['more than was said', [begin({ bytes: 10n }), pieceOf(11)]],
  ['a second beginning', [begin(), begin()]],
  ['silence', [begin(), pieceOf(10)]],
])('an exchange ends at %s, and its slot is free again', async (_, messages) => {
  const on = exchanges({ silenceMs: 50, atOnceMax: 1 });
  expect(cases(await serve(on, messages))).toEqual(['ready']);
  expect(cases(await serve(on, all)).at(-1)).toBe('sentSha256');
});

test('a bounded number of exchanges run at once, and the others come again', async () => {
  const on = exchanges({ atOnceMax: 1, silenceMs: 200 });
  const slow = serve(on, [begin()]);
  expect(cases(await serve(on, all))).toEqual(['wait']);
  await slow;
  expect(cases(await serve(on, all)).at(-1)).toBe('sentSha256');
});

test('one order may send a bounded number of bytes, however often it begins', async () => {
  const on = exchanges({ orderBytesMax: 2 * size, silenceMs: 20 });
  await serve(on, [begin()]);
  await serve(on, all);
  expect(why(await serve(on, all))[0]).toContain('all that it may');
});

test('an exchange keeps to its rate in each direction', async () => {
  const beganMs = performance.now();
  await serve(exchanges({ bytesPerSecondMax: 500_000 }), all);
  const least = (2 * size * 1_000) / 500_000 - 150;
  expect(performance.now() - beganMs).toBeGreaterThan(least);
});
