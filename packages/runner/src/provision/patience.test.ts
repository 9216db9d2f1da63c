/** How long the runner waits for a server of images, and which of its answers it trusts. */
import { ImageError, SourceBroken } from '@rackwright/disk-image';
import {
  type Clock,
  type WebAnswer,
  WebBroken,
  type WebClient,
  type WebOutcome,
} from '@rackwright/platform';
import { expect, test } from 'vitest';
import { patientLimits, readingLimitsWhileWriting, webSource } from './web-source.ts';

const clockOf = (after: Clock['after']): Clock => ({
  nowMs: () => 0,
  suspendAwareMs: () => 0,
  after,
});

test('pauses grow from half a second to half a minute', async () => {
  const pauses: number[] = [];
  const limits = patientLimits(
    clockOf((delayMs, callback) => {
      pauses.push(delayMs);
      callback();
      return () => {};
    }),
  );
  for (const count of [0, 1, 2, 5, 6, 200]) await limits.pause(count);
  expect(pauses).toEqual([500, 1_000, 2_000, 16_000, 30_000, 30_000]);
  expect([limits.emptyBreaksMax, limits.breaksMax]).toEqual([9, 256]);
});

const before = { emptyBreaksMax: 3, breaksMax: 4, pause: () => new Promise<void>(() => {}) };

test('once the disk is written to, its server may be away for a day', () => {
  let isWriting = false;
  const limits = readingLimitsWhileWriting(before, () => isWriting, new AbortController().signal);
  expect([limits.emptyBreaksMax, limits.breaksMax]).toEqual([3, 4]);
  isWriting = true;
  expect([limits.emptyBreaksMax, limits.breaksMax]).toEqual([2_880, 2_880]);
});

test('a pause ends at once when the work is stopped, also when it was stopped before', async () => {
  const stop = new AbortController();
  const limits = readingLimitsWhileWriting(before, () => true, stop.signal);
  let isOver = false;
  const pause = limits.pause(1).then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  stop.abort();
  await pause;
  await readingLimitsWhileWriting(before, () => true, AbortSignal.abort()).pause(1);
});

type Headers = Readonly<Record<string, string>>;

interface Served {
  readonly web: WebClient;
  readonly asked: Headers[];
  closed: number;
}

type Answer = Exclude<WebOutcome, { kind: 'answered' }> | Omit<WebAnswer, 'close'>;

/** A server of one answer. */
function serving(outcome: Answer): Served {
  const close = (): void => {
    served.closed += 1;
  };
  const served: Served = {
    asked: [],
    closed: 0,
    web: {
      send: async ({ headers }) => {
        served.asked.push(headers);
        return outcome.kind === 'answered' ? { ...outcome, close } : outcome;
      },
    },
  };
  return served;
}

const body = (async function* () {})();
const answer = (status: number, headers: Headers = {}): Omit<WebAnswer, 'close'> => {
  return { kind: 'answered', status, headers, body };
};
const { signal } = new AbortController();
const open = ({ web }: Served, from = 0) => webSource(web, 'http://h/image').open(from, signal);

test.each([408, 425, 429, 500, 502, 503, 504])(
  'a server that answers %d may give another answer soon',
  async (status) => {
    const served = serving(answer(status));
    await expect(open(served)).rejects.toBeInstanceOf(SourceBroken);
    expect(served.closed).toBe(1);
  },
);

test.each<[string, Answer]>([
  ['no such file', answer(404)],
  ['a range that was not asked for', answer(206, { 'content-range': 'bytes 6-9/10' })],
  ['a range that cannot be read', answer(206, { 'content-range': 'lines 5-9' })],
  ['a place where we may not go', { kind: 'forbidden', message: 'no' }],
  ['a certificate that is not trusted', { kind: 'untrusted', message: 'no' }],
  ['no HTTP', { kind: 'noHttp', message: 'no' }],
])('a server is given up for %s', async (_, outcome) => {
  const failure = await open(serving(outcome), 5).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ImageError);
  expect(failure).toMatchObject({ fault: 'unreachable' });
});

test.each<Answer>([
  { kind: 'cancelled' },
  { kind: 'unreachable', message: 'no route', mayHaveArrived: false },
])('the next try may succeed after $kind', async (outcome) => {
  await expect(open(serving(outcome))).rejects.toBeInstanceOf(SourceBroken);
});

test.each([
  ['"one"', '"one"'],
  ['W/"one"', undefined],
  [undefined, undefined],
])('a file is joined only by a strong tag: %s', async (etag, ifRange) => {
  const served = serving(answer(200, etag === undefined ? {} : { etag }));
  const source = webSource(served.web, 'http://h/image', { 'x-key': 'k' });
  await source.open(0, signal);
  await source.open(7, signal);
  // From the start there is nothing to be joined.
  await source.open(0, signal);
  const identity = { 'accept-encoding': 'identity', 'x-key': 'k' };
  expect([served.asked[0], served.asked[2]]).toStrictEqual([identity, identity]);
  const range = { ...identity, range: 'bytes=7-' };
  const joined = ifRange === undefined ? range : { ...range, 'if-range': ifRange };
  expect(served.asked[1]).toStrictEqual(joined);
});

test.each<[Headers, number | undefined]>([
  [{ 'content-length': '12' }, 12],
  [{ 'content-length': '1e3' }, undefined],
  [{ 'content-length': '99999999999999999999' }, undefined],
  [{}, undefined],
])('the size is taken from %o if it is a number of bytes', async (headers, sizeBytes) => {
  const opened = await open(serving(answer(200, headers)));
  expect(opened).toMatchObject({ start: 0 });
  expect(opened.sizeBytes).toBe(sizeBytes);
});

test('a range tells where it begins and how much there is, if that is known', async () => {
  const whole = await open(serving(answer(206, { 'content-range': 'bytes 5-9/10' })), 5);
  expect(whole).toMatchObject({ start: 5, sizeBytes: 10 });
  const part = await open(serving(answer(206, { 'content-range': 'bytes 5-9/*' })), 5);
  expect(part).not.toHaveProperty('sizeBytes');
});

test('a body that breaks can be taken up; any other error is none of the connection', async () => {
  for (const [error, kind] of [
    [new WebBroken('reset'), SourceBroken],
    [new TypeError('ours'), TypeError],
  ] as const) {
    const failing = (async function* () {
      yield Buffer.from('part');
      throw error;
    })();
    const served = serving({ ...answer(200), body: failing });
    const opened = await open(served);
    const read = async () => {
      for await (const chunk of opened.chunks) expect(String(chunk)).toBe('part');
    };
    await expect(read()).rejects.toBeInstanceOf(kind);
    opened.close();
    expect(served.closed).toBe(1);
  }
});
