import { type OperationId, unavailable } from '@rackwright/messages';
import type { Clock, WebOutcome, WebRequest } from '@rackwright/platform';
import { problemIn, WebBroken } from '@rackwright/platform';
import { afterMicrotasks, quietLog as quiet } from '@rackwright/platform/testing';
import { describe, expect, test } from 'vitest';
import type { CallResult } from '../host/index.ts';
import { OutOfBounds } from '../secrets/index.ts';
import { createWebhookCaller, webhookRequest } from './webhook.ts';

const id = 'uid/7/2/1';
const rack = 'racks/r2';
const url = 'https://hooks.example.org/rack/x?token=1';

interface Page {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly parts?: readonly string[];
  readonly breaks?: boolean;
}

function answered({ status, headers = {}, parts = [], breaks = false }: Page): WebOutcome {
  async function* body() {
    for (const part of parts) yield new TextEncoder().encode(part);
    if (breaks) throw new WebBroken('cut');
  }
  return { kind: 'answered', status, headers, body: body(), close: () => {} };
}

type CallerParts = Parameters<typeof createWebhookCaller>[0];

/** A caller whose requests the test answers, one after the other. */
function setUp(openCredential?: CallerParts['openCredential'], others: Partial<CallerParts> = {}) {
  const sent: { request: WebRequest; answer: (outcome: WebOutcome) => void }[] = [];
  const timers: { delayMs: number; callback: () => void }[] = [];
  const clock: Clock = {
    nowMs: () => 1_000_000,
    suspendAwareMs: () => 0,
    after: (delayMs, callback) => {
      timers.push({ delayMs, callback });
      return () => {};
    },
  };
  const send = (request: WebRequest, _: unknown, signal?: AbortSignal): Promise<WebOutcome> =>
    new Promise((resolve) => {
      sent.push({ request, answer: resolve });
      signal?.addEventListener('abort', () => resolve({ kind: 'cancelled' }));
    });
  const callWebhook = createWebhookCaller({
    ...{ web: { send }, clock, log: quiet },
    ...(openCredential === undefined ? {} : { openCredential }),
    ...others,
  });
  const results: CallResult[] = [];
  const ask = (given: Record<string, string> = { url }, changes = {}) => {
    const order = { id, arguments: given, deadlineMs: 2_000_000, rack, ...changes };
    callWebhook(order, async (result) => void results.push(result));
  };
  const settle = async () => {
    await afterMicrotasks(1_000);
    return results.at(-1);
  };
  return { ask, callWebhook, results, sent, settle, timers };
}

async function resultOf(outcome: WebOutcome): Promise<CallResult | undefined> {
  const { ask, sent, settle } = setUp();
  ask();
  sent[0]?.answer(outcome);
  return settle();
}

describe('the addresses that a webhook may not reach', () => {
  test.each([
    [unavailable('STORE_UNAVAILABLE', 'come again'), 'the store is away', 0],
    [new Error('damaged'), 'the internal addresses cannot be read', 1],
  ])(
    'cannot be read because of %s, so the call is tried again',
    async (refusal, message, linesLogged) => {
      const told: unknown[] = [];
      const log = { ...quiet, error: (...line: unknown[]) => void told.push(line.at(-1)) };
      const internalAddresses = () => Promise.reject(refusal);
      const { ask, sent, settle } = setUp(undefined, { log, internalAddresses });
      ask();
      expect(await settle()).toEqual({ kind: 'transientError', message });
      expect(sent).toEqual([]);
      expect(told).toEqual(linesLogged === 0 ? [] : [refusal]);
    },
  );
});

describe('a webhook', () => {
  test('is sent its body, under the id of the attempt', () => {
    const { ask, sent } = setUp();
    const headers = '{"Authorization":"Bearer x","X-Name":"h1"}';
    ask({ url, method: 'PUT', body: '{"host":"h1"}', headers });
    expect(sent[0]?.request).toMatchObject({ method: 'PUT', url });
    expect(Buffer.from(sent[0]?.request.body ?? '').toString()).toBe('{"host":"h1"}');
    expect(sent[0]?.request.headers).toEqual({
      'content-type': 'application/json',
      authorization: 'Bearer x',
      'x-name': 'h1',
      'idempotency-key': id,
      'user-agent': 'rackwright',
    });
  });

  test('is posted a text as a text', () => {
    const { ask, sent } = setUp();
    ask({ url, body: 'h1 is done' });
    expect(sent[0]?.request).toMatchObject({
      method: 'POST',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
  });

  test.each([200, 201, 204, 299])(
    'a webhook that answers %i is done, and what it said is kept',
    async (status) => {
      const result = await resultOf(answered({ status, parts: ['one\n', 'two \u0007words'] }));
      expect(result).toMatchObject({
        kind: 'complete',
        output: {
          exit: { code: status, outputBytes: 14n, lastOutput: 'one\ntwo words' },
          tail: new Uint8Array(Buffer.from('one\ntwo \u0007words')),
        },
      });
    },
  );

  test.each([400, 401, 403, 404, 410, 422])(
    'a webhook that answers %i has failed',
    async (status) => {
      const result = await resultOf(answered({ status, parts: ['no such host'] }));
      expect(result).toMatchObject({
        kind: 'failed',
        type: 'refused',
        message: `https://hooks.example.org answered ${status}: no such host`,
        output: { exit: { code: status } },
      });
    },
  );

  test.each([408, 425, 429, 500, 502, 503, 599])(
    'a webhook that answers %i is called again',
    async (status) => {
      expect(await resultOf(answered({ status }))).toMatchObject({ kind: 'transientError' });
    },
  );

  test('a webhook that redirects is not followed', async () => {
    const headers = { location: 'https://evil.example.org/x' };
    expect(await resultOf(answered({ status: 307, headers }))).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('redirects to https://evil.example.org (307)'),
    });
  });

  test.each<WebOutcome>([
    { kind: 'unreachable', message: 'nobody', mayHaveArrived: true },
    { kind: 'untrusted', message: 'self-signed' },
    { kind: 'noHttp', message: 'noise' },
  ])('a webhook that cannot be heard ($kind) is called again', async (outcome) => {
    const result = await resultOf(outcome);
    expect(result).toMatchObject({ kind: 'transientError' });
    // Paths and queries may be secret.
    expect(JSON.stringify(result, (_, value) => String(value))).not.toContain('token');
  });

  test('a webhook that breaks off within its words has done what its status says', async () => {
    const page = answered({ status: 200, parts: ['half'], breaks: true });
    expect(await resultOf(page)).toMatchObject({
      kind: 'complete',
      output: { exit: { code: 200 } },
    });
  });

  test('a webhook that talks without end is cut', async () => {
    const page = answered({ status: 200, parts: Array(100).fill('x'.repeat(1_000)) });
    const result = await resultOf(page);
    const { output } = result?.kind === 'complete' ? result : { output: undefined };
    expect(output?.tail.length).toBe(64 * 1024);
    expect(output?.exit.lastOutput.length).toBe(512);
  });

  test('a silent webhook is given up after a minute, or when its step is over', async () => {
    const { ask, timers, settle } = setUp();
    ask();
    expect(timers.map(({ delayMs }) => delayMs)).toEqual([60_000]);
    timers[0]?.callback();
    expect(await settle()).toMatchObject({
      kind: 'transientError',
      message: 'https://hooks.example.org did not answer in 60 s',
    });
    ask({ url }, { deadlineMs: 1_000_500 });
    expect(timers.at(-1)?.delayMs).toBe(500);
    const late = setUp();
    late.ask({ url }, { deadlineMs: 1_000_000 });
    expect(await late.settle()).toMatchObject({ kind: 'transientError' });
    expect(late.sent).toEqual([]);
  });
});

test('a call that is under way is not made twice, and may be made again afterwards', async () => {
  const { ask, sent, settle } = setUp();
  ask();
  ask();
  expect(sent).toHaveLength(1);
  sent[0]?.answer(answered({ status: 503 }));
  await settle();
  ask();
  expect(sent).toHaveLength(2);
});

test('a call whose result was not recorded may be asked for again', async () => {
  const { callWebhook, sent, settle } = setUp();
  const order = { id, arguments: { url }, deadlineMs: 2_000_000, rack };
  callWebhook(order, () => Promise.reject(new Error('the store is away')));
  sent[0]?.answer(answered({ status: 200 }));
  await settle();
  callWebhook(order, async () => {});
  expect(sent).toHaveLength(2);
});

test('the number of concurrent calls is bounded; a call beyond it waits', async () => {
  const { ask, sent, settle } = setUp();
  for (let count = 0; count < 65; count += 1) ask({ url }, { id: `uid/${count}/0/1` });
  expect(sent).toHaveLength(64);
  expect(await settle()).toMatchObject({ kind: 'transientError' });
});

test.each([
  [{ method: 'GET' }, 'method: "GET" is neither POST nor PUT'],
  [{ url: 'hooks' }, 'url: must begin'],
  [{ headers: '[]' }, 'headers: must be a JSON object'],
  [{ headers: '{"a":1}' }, 'headers: a must be'],
  [{ headers: '{"a":"x\\r\\ny: z"}' }, 'headers: a must be'],
  [{ headers: '{"a b":"x"}' }, 'headers: has a name that is none'],
  [{ headers: '{"Host":"x"}' }, 'headers: host is set by us'],
  [{ headers: '{"Idempotency-Key":"x"}' }, 'headers: idempotency-key is set by us'],
  [{ headers: '{"Transfer-Encoding":"x"}' }, 'headers: transfer-encoding is set by us'],
  [{ body: 'x'.repeat(65_537) }, 'body: has 65537 bytes'],
])('the arguments %o are refused', async (changes, text) => {
  const given: Record<string, string> = { url, ...changes };
  const order = { id, arguments: given, deadlineMs: 2_000_000, rack };
  expect(problemIn(webhookRequest(order))).toContain(text);
  const { ask, sent, settle } = setUp();
  ask(given);
  expect(await settle()).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
  expect(sent).toEqual([]);
});

describe('a header that is a secret', () => {
  const secret = 'hunter2-hunter2';
  const named = (credential: string) =>
    JSON.stringify({ authorization: { credential, part: 'password', prefix: 'Bearer ' } });
  const given = { url, secretHeaders: named('credentials/hooks') };
  const asked: string[] = [];
  const open = async (name: string, operationId: OperationId) => {
    asked.push(`${name} ${operationId}`);
    return name === 'credentials/hooks' ? { username: 'bot', password: secret } : undefined;
  };

  test('is looked up for the call, and goes with it', async () => {
    const { ask, sent, settle } = setUp(open);
    ask(given);
    await settle();
    expect(asked).toEqual([`credentials/hooks ${id}`]);
    expect(sent[0]?.request.headers['authorization']).toBe(`Bearer ${secret}`);
    sent[0]?.answer(answered({ status: 200, parts: ['fine'] }));
    expect(await settle()).toMatchObject({ kind: 'complete' });
  });

  test.each([200, 500, 403])(
    'is in nothing that is kept of an answer that repeats it: %i',
    async (status) => {
      const { ask, sent, settle } = setUp(open);
      ask(given);
      await settle();
      const parts = [
        'you sent Bearer hunter2-',
        `hunter2 and ${Buffer.from(secret).toString('base64')}`,
      ];
      sent[0]?.answer(answered({ status, parts }));
      const result = await settle();
      const text = JSON.stringify(result, (_, value: unknown) =>
        typeof value === 'bigint' ? String(value) : value,
      );
      expect(text).not.toContain('hunter2');
      const tail = result !== undefined && 'output' in result ? result.output?.tail : undefined;
      expect(Buffer.from(tail ?? []).toString('latin1')).not.toContain('hunter2');
      if (status === 200)
        expect(Buffer.from(tail ?? []).toString()).toContain('Bearer [secret] and');
      else expect(text).toContain('[secret]');
    },
  );

  test.each([
    ['of a webhook that breaks off within its words', 'fine '.length, true],
    ['of exactly 64 KiB', 64 * 1024 - 'hunter2-'.length, false],
  ])('leaves no beginning in an answer %s', async (_, before, breaks) => {
    const { ask, sent, settle } = setUp(open);
    ask(given);
    await settle();
    const parts = ['x'.repeat(before), 'hunter2-'];
    sent[0]?.answer(answered({ status: 200, parts, breaks }));
    const result = await settle();
    const { output } = result?.kind === 'complete' ? result : { output: undefined };
    expect(Buffer.from(output?.tail ?? []).toString()).toBe('x'.repeat(before));
    expect(output?.exit.lastOutput).not.toContain('hunter2');
  });

  test('does not go with the call of a host that it is not for', async () => {
    const { ask, sent, settle } = setUp((name, _, givenFor) => {
      return Promise.reject(new OutOfBounds(`${name} is not for ${givenFor.rack}`));
    });
    ask(given);
    expect(await settle()).toEqual({
      kind: 'failed',
      type: 'credentialUnusable',
      message: 'credentials/hooks is not for racks/r2',
    });
    expect(sent).toEqual([]);
  });

  test('fails the step when there is no such credential, or it cannot be had now', async () => {
    const { ask, sent, settle } = setUp(open);
    ask({ url, secretHeaders: named('credentials/other') });
    expect(await settle()).toMatchObject({ kind: 'failed', type: 'credentialUnusable' });
    const away = setUp(() => Promise.reject(new Error(`store away, ${secret}`)));
    away.ask(given);
    const result = await away.settle();
    expect(result).toMatchObject({ kind: 'transientError' });
    expect(JSON.stringify(result)).not.toContain(secret);
    const bad = setUp(open);
    bad.ask({ url, secretHeaders: '{"x": 1}' });
    expect(await bad.settle()).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
    expect([...sent, ...away.sent, ...bad.sent]).toEqual([]);
  });
});
