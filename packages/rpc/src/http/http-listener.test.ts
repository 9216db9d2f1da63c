/** Hostile and slow clients over HTTP/1.1; each beside admitted ones. */
import { setTimeout as wait } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import {
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '@rackwright/messages';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  ask,
  dial,
  type HttpServer,
  health,
  json,
  startHttp,
  untilClosed,
} from './http.fixture.ts';

const check = '/grpc.health.v1.Health/Check';
const watch = '/grpc.health.v1.Health/Watch';
const running: HttpServer[] = [];

async function start(...args: Parameters<typeof startHttp>): Promise<HttpServer> {
  const started = await startHttp(...args);
  running.push(started);
  return started;
}

afterEach(async () => {
  for (const { server } of running.splice(0)) await server.close();
});

/** An empty message in an envelope: the one request of a stream. */
const emptyEnvelope = Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]);
const streamed = { ...json('ann'), 'content-type': 'application/connect+json' };

/** The wire form of a request. */
function wired(path: string, headers: Readonly<Record<string, string>>, body = ''): string {
  const lines = Object.entries({ host: 'x', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return [`POST ${path} HTTP/1.1`, ...lines, `content-length: ${body.length}`, '', body].join(
    '\r\n',
  );
}

describe('a head', () => {
  test('a head that never is whole ends its connection, and idleness ends one too', async () => {
    const limits = { firstMessageMs: 150, connectionIdleMs: 150 };
    const to = await start(health({}), { limits });
    const slow = await dial(to);
    slow.write('POST / HTTP/1.1\r\nhost: x\r\n');
    expect(await untilClosed(slow)).not.toContain('200');
    const idle = await dial(to);
    idle.write(wired(check, json('ann'), '{}'));
    expect(await untilClosed(idle)).toMatch(/^HTTP\/1.1 200 /);
  });

  test.each([
    [
      'too large',
      `GET / HTTP/1.1\r\nhost: x\r\na: ${'a'.repeat(20_000)}\r\n\r\n`,
      /^(HTTP\/1.1 431 |$)/,
    ],
    ['without a host', 'GET / HTTP/1.1\r\n\r\n', /^HTTP\/1.1 400 /],
    [
      'with two lengths',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      /^HTTP\/1.1 400 /,
    ],
    [
      'with a length and chunks',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      /^HTTP\/1.1 400 /,
    ],
    ['that is none', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /^HTTP\/1.1 400 /],
  ])('a head %s is refused, and its connection ended', async (_what, head, answer) => {
    const socket = await dial(await start(health({})));
    socket.write(head);
    expect(await untilClosed(socket)).toMatch(answer);
  });
});

describe('a body', () => {
  const limits = { firstMessageMs: 200 };

  test('a body of a caller that is not let in is not read', async () => {
    const read = vi.fn<() => object>(() => ({}));
    const to = await start(health({ check: read }));
    const socket = await dial(to);
    socket.write(`POST ${check} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`);
    socket.write('content-length: 9000\r\nexpect: 100-continue\r\n\r\n');
    const text = await untilClosed(socket);
    expect(text).toMatch(/^HTTP\/1.1 401 /);
    expect(text).not.toContain('100 Continue');
    expect(read).not.toHaveBeenCalled();
  });

  test('is asked for once its caller was let in', async () => {
    const socket = await dial(await start(health({ check: () => ({ status: Status.SERVING }) })));
    const headers = { ...json('ann'), expect: '100-continue', connection: 'close' };
    const head = wired(check, headers, '{}').slice(0, -2);
    socket.write(head);
    socket.once('data', () => socket.write('{}'));
    expect(await untilClosed(socket)).toMatch(/^HTTP\/1.1 100 [^]*HTTP\/1.1 200 [^]*SERVING/);
  });

  test('a body that never is whole ends with words, and holds nothing then', async () => {
    const to = await start(health({}), { limits });
    const socket = await dial(to);
    socket.write(wired(check, json('ann'), '{"service":"a"}').slice(0, -5));
    expect(await untilClosed(socket)).toMatch(/^HTTP\/1.1 504 [^]*BODY_TOO_SLOW/);
    expect(to.server.counts.incomingBytes).toBe(0);
  });

  test.each([
    ['says so', {}],
    ['does not say so', { 'transfer-encoding': 'chunked' }],
  ])('a body that is larger than its method takes and %s is refused', async (_how, more) => {
    const to = await start(health({}));
    const body = JSON.stringify({ service: 'x'.repeat(20_000) });
    const answer = await ask(to, check, { headers: { ...json('ann'), ...more }, body });
    expect(answer.status).toBe(429);
    expect(answer.body.toString()).toContain('MESSAGE_TOO_LARGE');
  });

  test.each([
    ['deep', '{"service":'.repeat(100), 'levels of objects'],
    ['of many elements', `{"service":[${'0,'.repeat(2_000)}0]}`, 'elements of lists'],
  ])('a body that is %s is refused before anything is made of it', async (_what, body, text) => {
    const answer = await ask(await start(health({})), check, { headers: json('ann'), body });
    expect(answer.status).toBe(429);
    expect(answer.body.toString()).toContain(text);
  });

  test('a body that is packed is refused, in an envelope as well', async () => {
    const to = await start(health({}));
    const packed = await ask(to, check, {
      ...{ headers: { ...json('ann'), 'content-encoding': 'gzip' }, body: '{}' },
    });
    expect(packed.status).toBe(501);
    const body = Buffer.from(emptyEnvelope);
    body[0] = 1;
    const flagged = await ask(to, watch, { headers: streamed, body });
    expect(flagged.body.toString()).toContain('COMPRESSED_REQUEST');
  });

  test.each([
    ['is cut short', emptyEnvelope.subarray(0, 3)],
    ['holds two messages', Buffer.concat([emptyEnvelope, emptyEnvelope])],
    ['says that it is larger', Buffer.from([0, 0xff, 0xff, 0xff, 0xff])],
  ])('a body of a stream that %s is refused', async (_what, body) => {
    const answer = await ask(await start(health({})), watch, { headers: streamed, body });
    expect(answer.body.toString()).toContain('MALFORMED_MESSAGE');
  });
});

describe('a page of another site', () => {
  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data', 415],
    ['', 415],
  ])('a page that posts %s has nothing carried out', async (type, status) => {
    const called = vi.fn<() => object>(() => ({}));
    const to = await start(health({ check: called }));
    const headers = { ...json('ann'), 'content-type': type };
    expect((await ask(to, check, { headers, body: '{}' })).status).toBe(status);
    expect(called).not.toHaveBeenCalled();
  });

  test('a page that its browser marks has nothing carried out, whatever it shows', async () => {
    const called = vi.fn<() => object>(() => ({}));
    const to = await start(health({ check: called }));
    const headers = { ...json('ann'), 'sec-fetch-site': 'cross-site' };
    const answer = await ask(to, check, { headers, body: '{}' });
    expect(answer.status).toBe(403);
    expect(answer.body.toString()).toContain('CROSS_SITE');
    expect(called).not.toHaveBeenCalled();
  });

  test('is allowed nothing when it asks before, and no answer is for it', async () => {
    const to = await start(health({}));
    const origin = 'https://other.example';
    const before = await ask(to, check, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
    expect(before.status).toBe(405);
    const after = await ask(to, check, { headers: { ...json('ann'), origin }, body: '{}' });
    for (const { headers } of [before, after]) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    }
  });

  test('gets nothing by GET', async () => {
    const to = await start(health({}));
    expect((await ask(to, `${check}?message={}`, { method: 'GET' })).status).toBe(405);
  });
});

describe('requests in a row on one connection', () => {
  test('are answered in order, one at a time', async () => {
    let open = 0;
    let most = 0;
    const to = await start(
      health({
        check: async () => {
          open += 1;
          most = Math.max(most, open);
          await wait(20);
          open -= 1;
          return { status: Status.SERVING };
        },
      }),
    );
    const socket = await dial(to);
    socket.write(wired(check, json('ann'), '{}').repeat(3));
    socket.write(wired(check, { ...json('ann'), connection: 'close' }, '{}'));
    const text = await untilClosed(socket);
    expect(text.match(/HTTP\/1.1 200 /g)).toHaveLength(4);
    expect(most).toBe(1);
  });

  test('requests that are too many, behind one that lasts, end it', async () => {
    const to = await start(health({ check: () => new Promise(() => undefined) }));
    const socket = await dial(to);
    const closed = untilClosed(socket);
    socket.write(wired(check, json('ann'), '{}').repeat(20));
    expect(await closed).toBe('');
    await vi.waitFor(() => expect(to.server.counts.calls).toBe(0));
  });
});

describe('a request behind the last answer of its connection', () => {
  const stream = wired(watch, streamed, emptyEnvelope.toString('latin1'));
  const old = wired(watch, { ...streamed, connection: 'keep-alive' }, emptyEnvelope.toString());

  test.each([
    ['to a request without a host', 'GET / HTTP/1.1\r\n\r\n', stream, 0, / 400 /],
    ['to HTTP/1.0, without a length', old.replace('1.1', '1.0'), stream, 1, / 200 /],
  ])(
    'a request behind an answer %s is not carried out, and holds nothing',
    async (_which, last, behind, called, said) => {
      const watched = vi.fn<() => void>();
      const to = await start(
        health({
          watch: async function* () {
            watched();
            yield { status: Status.SERVING };
          },
        }),
      );
      const socket = await dial(to);
      socket.write(last + behind, 'latin1');
      expect(await untilClosed(socket)).toMatch(said);
      await vi.waitFor(() => expect(to.server.counts.connections, 'connections').toBe(0));
      expect(watched).toHaveBeenCalledTimes(called);
      expect(to.server.counts.calls).toBe(0);
    },
  );

  test('is carried out when the one before expected what nobody knows', async () => {
    const to = await start(health({ check: () => ({ status: Status.SERVING }) }));
    const socket = await dial(to);
    socket.write(wired(check, { ...json('ann'), expect: 'a miracle' }, '{}'));
    socket.write(wired(check, { ...json('ann'), connection: 'close' }, '{}'));
    expect((await untilClosed(socket)).match(/HTTP\/1.1 200 /g)).toHaveLength(2);
  });
});

describe('who goes on while it is refused', () => {
  test('has its connection ended, after a word of when to come again', async () => {
    const limits = { refusalsPerSecond: 0.001, refusalsBurst: 2 };
    const to = await start(health({}), { limits });
    const socket = await dial(to);
    const { authorization: _none, ...headers } = json('ann');
    socket.write(wired(check, headers, '{}').repeat(3));
    const text = await untilClosed(socket);
    expect(text.match(/HTTP\/1.1 401 /g)).toHaveLength(2);
    expect(text).toMatch(/HTTP\/1.1 503 [^]*TOO_MANY_REFUSED/);
    expect(to.server.counts.refusedEnded).toBe(1);
  });
});

describe('a stream', () => {
  /** 64 KiB in a field that the schema does not name: a connection is filled by few of them. */
  function large() {
    const response = create(HealthCheckResponseSchema);
    const field = { no: 99, wireType: WireType.LengthDelimited };
    response.$unknown = [{ ...field, data: lengthAndBytes(64 * 1024) }];
    return response;
  }

  function lengthAndBytes(length: number): Uint8Array {
    return Buffer.concat([Buffer.from(varintEncode(length)), Buffer.alloc(length)]);
  }

  function varintEncode(value: number): number[] {
    return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varintEncode(value >>> 7)];
  }

  test('is made no faster than it is read, and cut when nobody reads it', async () => {
    let made = 0;
    let ended = false;
    const endless = health({
      watch: async function* (_request, { signal }) {
        try {
          while (!signal.aborted) {
            made += 1;
            yield large();
          }
        } finally {
          ended = true;
        }
      },
    });
    const to = await start(endless, { limits: { answerStallMs: 500 } });
    const socket = await dial(to);
    socket.pause();
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const headers = { ...streamed, 'content-type': 'application/connect+proto' };
    socket.write(wired(watch, headers, '\0'.repeat(5)), 'latin1');
    await vi.waitFor(() => expect(ended, 'the stream has ended').toBe(true), { timeout: 60_000 });
    // What the system and both ends hold of a connection; without an end it would be all memory.
    expect(made).toBeLessThan(1_000);
    expect(to.server.counts.calls).toBe(0);
    socket.resume();
    await closed;
  });

  test('ends with its caller', async () => {
    let ended = false;
    const to = await start(
      health({
        watch: async function* (_request, { signal }) {
          yield { status: Status.SERVING };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          ended = true;
        },
      }),
    );
    const socket = await dial(to);
    socket.write(wired(watch, streamed, emptyEnvelope.toString('latin1')), 'latin1');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    await vi.waitFor(() => expect(ended).toBe(true));
    expect(to.server.counts.calls).toBe(0);
  });

  test('is told when the server closes', async () => {
    const to = await start(
      health({
        watch: async function* (_request, { signal }) {
          yield { status: Status.SERVING };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      }),
    );
    const socket = await dial(to);
    const text = untilClosed(socket);
    socket.write(wired(watch, streamed, emptyEnvelope.toString('latin1')), 'latin1');
    await new Promise((resolve) => socket.once('data', resolve));
    await to.server.close();
    expect(await text).toContain('SERVER_CLOSING');
  });
});
