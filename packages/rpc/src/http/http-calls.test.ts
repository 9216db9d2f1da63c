/** Calls over HTTP/1.1, by the clients of others and by hand. */
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import {
  Health,
  invalidArgument,
  HealthCheckResponse_ServingStatus as Status,
} from '@rackwright/messages';
import * as googleRpc from '@rackwright/messages/google-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { connect } from '../client/channel.ts';
import { createClient as createGrpcClient } from '../client/client.ts';
import { ask, dial, type HttpServer, health, json, startHttp, transports } from './http.fixture.ts';
import { overHttp } from './http-calls.ts';

const check = '/grpc.health.v1.Health/Check';
const mine = { headers: { authorization: 'Bearer ann' } };
const running: HttpServer[] = [];

async function start(...args: Parameters<typeof startHttp>): Promise<HttpServer> {
  const started = await startHttp(...args);
  running.push(started);
  return started;
}

afterEach(async () => {
  for (const { server } of running.splice(0)) await server.close();
});

const serving = health({
  check: ({ service }) => {
    if (service === '') return { status: Status.SERVING };
    const violations = [{ field: 'service', description: 'is unknown; try ""' }];
    throw invalidArgument(violations);
  },
  watch: async function* () {
    yield { status: Status.NOT_SERVING };
    yield { status: Status.SERVING };
  },
});

describe.each(Object.entries(transports))('a client of %s', (_name, transportTo) => {
  test('gets the answer, and each message of a stream', async () => {
    const client = createClient(Health, transportTo(await start(serving)));
    expect((await client.check({}, mine)).status).toBe(Status.SERVING);
    const seen: Status[] = [];
    for await (const { status } of client.watch({}, mine)) seen.push(status);
    expect(seen).toEqual([Status.NOT_SERVING, Status.SERVING]);
  });

  test('is told the reason and every violation of a refusal', async () => {
    const client = createClient(Health, transportTo(await start(serving)));
    const error = await client.check({ service: 'x' }, mine).catch((thrown: unknown) => thrown);
    if (!(error instanceof ConnectError)) throw new Error(`no refusal: ${String(error)}`);
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.findDetails(googleRpc.ErrorInfoSchema)).toMatchObject([
      { reason: 'FIELD_VIOLATIONS', domain: 'rackwright' },
    ]);
    const [request] = error.findDetails(googleRpc.BadRequestSchema);
    expect(request?.fieldViolations).toMatchObject([
      { field: 'service', description: 'is unknown; try ""' },
    ]);
  });

  test('is refused without a token, in a call and in a stream', async () => {
    const client = createClient(Health, transportTo(await start(serving)));
    const all = async () => {
      for await (const each of client.watch({})) expect(each).toBeUndefined();
    };
    for (const refused of [client.check({}), all()]) {
      const error = await refused.then(undefined, (thrown: unknown) => thrown);
      expect(ConnectError.from(error).code).toBe(Code.Unauthenticated);
    }
  });
});

test('gRPC goes on beside it on the same port, by what a client offers', async () => {
  const to = await start(serving);
  const target = `127.0.0.1:${to.server.port}`;
  const channel = connect({ target, caPem: to.ca.caPem });
  const client = createGrpcClient(Health, channel, mine);
  expect((await client.check({})).status).toBe(Status.SERVING);
  channel.close();
  for (const [offered, chosen] of [
    [['h2'], 'h2'],
    [['h2', 'http/1.1'], 'http/1.1'],
    [['http/1.1'], 'http/1.1'],
  ] as const) {
    const socket = await dial(to, [...offered]);
    expect(socket.alpnProtocol).toBe(chosen);
    socket.destroy();
  }
});

describe('a request by hand', () => {
  test('is answered in JSON', async () => {
    const answer = await ask(await start(serving), check, { headers: json('ann'), body: '{}' });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body.toString())).toEqual({ status: 'SERVING' });
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  test('is told each name that it has misspelled, by its path', async () => {
    const to = await start(serving);
    const body = '{"servise":"a","other":[1]}';
    const answer = await ask(to, check, { headers: json('ann'), body });
    expect(answer.status).toBe(400);
    const { code, details } = JSON.parse(answer.body.toString());
    expect(code).toBe('invalid_argument');
    expect(details[1].debug.fieldViolations).toEqual([
      { field: 'servise', description: 'is unknown; HealthCheckRequest has service' },
      { field: 'other', description: 'is unknown; HealthCheckRequest has service' },
    ]);
  });

  test.each([
    ['no JSON', '{"service":', 400],
    ['JSON of another type', '{"service":7}', 400],
    ['no UTF-8', Buffer.from('7b2273657276696365222ff227d', 'hex'), 400],
    ['a list', '[]', 400],
  ])('a request that is %s is refused with a reason', async (_what, body, status) => {
    const answer = await ask(await start(serving), check, { headers: json('ann'), body });
    expect(answer.status).toBe(status);
    const { details } = JSON.parse(answer.body.toString());
    expect(details[0].debug.reason).toBe('MALFORMED_MESSAGE');
  });

  test('says when to come again, and what to show, in headers of HTTP', async () => {
    const to = await start(serving, { limits: { callsMax: 0, retryAfterMs: 5_000 } });
    const full = await ask(to, check, { headers: json('ann'), body: '{}' });
    expect([full.status, full.headers['retry-after']]).toEqual([503, '5']);
    const open = await start(serving);
    const headers = { 'content-type': 'application/json' };
    const stranger = await ask(open, check, { headers, body: '{}' });
    expect([stranger.status, stranger.headers['www-authenticate']]).toEqual([401, 'Bearer']);
  });

  test('ends at the deadline that it names', async () => {
    const to = await start(health({ check: () => new Promise(() => undefined) }));
    const headers = { ...json('ann'), 'connect-timeout-ms': '50' };
    const answer = await ask(to, check, { headers, body: '{}' });
    expect(answer.status).toBe(504);
    expect(to.server.counts.calls).toBe(0);
  });

  test('an answer of nothing tells no length of it, as RFC 9110 wants it', async () => {
    const http = overHttp(({ path }) => ({ status: path === '/none' ? 204 : 200, headers: {} }));
    const to = await start(serving, { http });
    expect((await ask(to, '/none')).headers['content-length']).toBeUndefined();
    expect((await ask(to, '/empty')).headers['content-length']).toBe('0');
  });

  test('a request in the absolute form is taken, as RFC 9112 wants it', async () => {
    const to = await start(serving);
    const answer = await ask(to, `https://other.example${check}`, {
      ...{ headers: json('ann'), body: '{}' },
    });
    expect(answer.status).toBe(200);
  });
});
