/** What callers can take of a server, over real sockets, with limits small enough to be reached. */
import { type ClientHttp2Session, connect as dialHttp2 } from 'node:http2';
import { connect as dialTcp, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { connect as dialTls, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { ApiFailure, bind, type Guard, Health, unauthenticated } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../client/channel.ts';
import { createClient } from '../client/client.ts';
import type { RpcLimits } from '../wire/limits.ts';
import { createTestCa, type TestCa } from '../wire/test-pki.ts';
import { type RpcServer, serve } from './server.ts';

const clock = nodeClock();
let ca: TestCa;
const open: { close(): unknown }[] = [];
beforeAll(async () => {
  ca = await createTestCa();
});

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function start(
  limits: Partial<RpcLimits>,
  withClientCa = false,
  guard: Guard = () => undefined,
  openServices: readonly string[] = [Health.typeName],
): Promise<RpcServer> {
  const own = await ca.server();
  const hold = new Promise<never>(() => undefined);
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, log, clock, random: nodeRandom() },
    tls: withClientCa ? { ...own, clientCaPem: ca.caPem } : own,
    services: [
      bind(agent.EnrolmentService, {
        issueCertificate: ({ joinToken }) => (joinToken === 'hold' ? hold : {}),
      }),
      bind(Health, {
        check: ({ service }) => (service === 'hold' ? hold : {}),
        list: () => ({}),
        watch: async function* () {},
      }),
    ],
    openServices,
    guard,
    limits: { closeGraceMs: 100, openCallsPerSecond: 1_000, openCallsBurst: 1_000, ...limits },
  });
  open.push(server);
  return server;
}

function client(server: RpcServer) {
  const channel = connect({ target: `127.0.0.1:${server.port}`, caPem: ca.caPem });
  open.push(channel);
  return createClient(Health, channel);
}

function caller(server: RpcServer) {
  const channel = connect({ target: `127.0.0.1:${server.port}`, caPem: ca.caPem });
  open.push(channel);
  return createClient(agent.EnrolmentService, channel);
}

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error as ApiFailure).error.reason,
  );

/** Begins a call, and says how the server ended it: nothing is closed from here. */
function requestOn(
  session: ClientHttp2Session,
  body: Buffer,
  path = '/grpc.health.v1.Health/Check',
): Promise<string | undefined> {
  if (session.listenerCount('error') === 0) session.on('error', () => undefined);
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, te: 'trailers' },
    'content-type': 'application/grpc',
  });
  let status: string | undefined;
  const take = (received: Readonly<Record<string, unknown>>) => {
    status ??= received['grpc-status'] as string | undefined;
  };
  stream.on('response', take);
  stream.on('trailers', take);
  stream.on('error', () => undefined);
  stream.resume();
  stream.write(body);
  return new Promise((resolve) => stream.once('close', () => resolve(status)));
}

function tcp(server: RpcServer, localAddress: string): Socket {
  const socket = dialTcp({ host: '127.0.0.1', port: server.port, localAddress });
  socket.on('error', () => undefined);
  socket.resume();
  open.push({ close: () => socket.destroy() });
  return socket;
}

function tls(
  server: RpcServer,
  more: SecureContextOptions & { localAddress?: string } = {},
): TLSSocket {
  const to = { host: '127.0.0.1', port: server.port, localAddress: '127.0.7.1' };
  const socket = dialTls({ ...to, ca: ca.caPem, ALPNProtocols: ['h2'], ...more });
  socket.on('error', () => undefined);
  open.push({ close: () => socket.destroy() });
  return socket;
}

/** What a client says first. */
async function clientHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const socket = dialTls({ socket: near, ALPNProtocols: ['h2'] });
  socket.on('error', () => undefined);
  const said = await new Promise<Buffer>((resolve) => far.once('data', resolve));
  for (const each of [socket, near, far]) each.destroy();
  return said;
}

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => socket.once('close', () => resolve()));

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries += 1) {
    if (tries > 1_000) throw new Error(`waited in vain for ${String(holds)}`);
    await new Promise<void>((resolve) => clock.after(10, resolve));
  }
}

describe('a flood of connections', () => {
  test('is cut off at so many from one address, and leaves room for the others', async () => {
    const server = await start({ connectionsPerAddressMax: 5, connectionsMax: 100 });
    const sockets = Array.from({ length: 12 }, () => tcp(server, '127.0.7.1'));
    const refused = sockets.map(closed);
    await until(() => server.counts.refused === 7);
    expect(server.counts.connections).toBe(5);
    expect(refused).toHaveLength(12);
    await client(server).check({});
  });

  test('holds no more handshakes than allowed, and each gives its slot back', async () => {
    const server = await start({ handshakesMax: 4, handshakesPerAddressMax: 2, handshakeMs: 300 });
    const begun = await clientHello();
    const stuck = Array.from({ length: 20 }, (_, index) => tcp(server, `127.0.7.${1 + index}`));
    for (const socket of stuck) socket.write(begun);
    await until(() => server.counts.waiting === 16);
    expect(server.counts).toMatchObject({ handshakes: 4, waiting: 16, connections: 20 });
    await Promise.all(stuck.map(closed));
    await until(() => server.counts.connections === 0);
    expect(server.counts).toMatchObject({ handshakes: 0, waiting: 0 });
    await client(server).check({});
  });

  test('connections that know the protocol begin a bounded number of handshakes', async () => {
    const server = await start({ handshakesPerSecond: 0.01, handshakesBurst: 3 });
    const begunMs = clock.nowMs();
    for (let from = 1; from <= 40; from += 1) tls(server, { localAddress: `127.0.7.${from}` });
    await until(() => server.counts.strangers >= 3);
    await until(() => server.counts.strangers === 40 || clock.nowMs() - begunMs > 3_000);
    const atRate = ((clock.nowMs() - begunMs) / 1_000) * 0.01;
    expect(server.counts.strangers).toBeLessThanOrEqual(3 + atRate + 1);
  });

  test('connections that say nothing, or too little, take no slot, and leave nothing', async () => {
    const server = await start({ handshakesMax: 1 });
    const half = (await clientHello()).subarray(0, 100);
    const sockets = ['127.0.7.1', '127.0.7.2', '127.0.7.3'].map((from) => tcp(server, from));
    sockets[1]?.write(half.subarray(0, 3));
    sockets[2]?.write(half);
    await until(() => server.counts.connections === 3);
    await client(server).check({});
    expect(server.counts).toMatchObject({ handshakes: 0, waiting: 0 });
    for (const socket of sockets) socket.end();
    await until(() => server.counts.connections === 1);
  });

  test('a client hello in single bytes still opens a connection', async () => {
    const server = await start({});
    const slow = dialTcp({ host: '127.0.0.1', port: server.port });
    const [near, far] = duplexPair();
    const socket = dialTls({
      socket: near,
      host: '127.0.0.1',
      ca: ca.caPem,
      ALPNProtocols: ['h2'],
    });
    open.push({ close: () => [slow, near, far, socket].map((each) => each.destroy()) });
    const dribble = async (hello: Buffer): Promise<void> => {
      for (const byte of hello.subarray(0, 8)) {
        slow.write(Buffer.of(byte));
        await new Promise<void>((resolve) => clock.after(1, resolve));
      }
      slow.write(hello.subarray(8));
      far.pipe(slow).pipe(far);
    };
    far.once('data', (hello: Buffer) => void dribble(hello));
    await new Promise<void>((resolve) => socket.once('secureConnect', resolve));
  });

  test('connections that wait are gone when they go, at once', async () => {
    const server = await start({ handshakesMax: 1, handshakeSlotMs: 60_000, handshakeMs: 60_000 });
    const begun = await clientHello();
    const sockets = ['127.0.7.1', '127.0.7.2', '127.0.7.3'].map((from) => tcp(server, from));
    for (const socket of sockets) socket.write(begun);
    await until(() => server.counts.waiting === 2);
    for (const socket of sockets) socket.destroy();
    await until(() => server.counts.connections === 0);
  });

  test('a flood without certificates costs few handshakes, and keeps out no holder', async () => {
    const server = await start(
      { handshakesMax: 3, suspectHandshakesMax: 1, failedSlotMs: 60_000 },
      true,
    );
    const own = await ca.client('rackwright://racks/r1');
    const strangers = Array.from({ length: 10 }, () => tls(server));
    await until(() => server.counts.connections === 10 && server.counts.waiting > 0);
    const known = tls(server, {
      localAddress: '127.0.8.1',
      ca: ca.caPem,
      key: own.privateKeyPem,
      cert: own.certificateChainPem,
    });
    await new Promise<void>((resolve) => known.once('secureConnect', resolve));
    expect(strangers).toHaveLength(10);
    expect(server.counts.handshakes).toBeLessThanOrEqual(3);
  });
});

describe('whether a server is well', () => {
  test.each([false, true])('is known while its room is full; with mTLS: %s', async (withCa) => {
    const server = await start({ connectionsMax: 2, handshakesMax: 1 }, withCa);
    for (const from of ['127.0.7.1', '127.0.7.2', '127.0.7.3']) tcp(server, from);
    await until(() => server.counts.refused === 1);
    expect(await server.problem(60_000)).toBeUndefined();
    expect(server.counts).toMatchObject({ connections: 2, refused: 1 });
  });

  test('makes none of its peers suspect, and is denied once it is closed', async () => {
    const server = await start({ suspectHandshakesMax: 1, handshakesMax: 2 }, true);
    expect(await server.problem(60_000)).toBeUndefined();
    expect(server.counts).toMatchObject({ connections: 0, handshakes: 0, waiting: 0 });
    await server.close();
    expect(await server.problem(60_000)).toBe('TLS does not listen any more');
  });
});

describe('a call', () => {
  const path = '/grpc.health.v1.Health/Check';

  /** A stream with these headers, and how it ended. */
  async function raw(server: RpcServer, headers: Record<string, string>, body?: Buffer) {
    const session = dialHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.caPem });
    session.on('error', () => undefined);
    open.push({ close: () => session.destroy() });
    const stream = session.request({
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      ...headers,
    });
    stream.on('error', () => undefined);
    let status: string | undefined;
    const take = (received: Readonly<Record<string, unknown>>) => {
      status ??= received['grpc-status'] as string | undefined;
    };
    stream.on('response', take);
    stream.on('trailers', take);
    stream.on('data', () => undefined);
    stream.on('end', () => stream.close());
    if (body !== undefined) stream.write(body);
    await new Promise<void>((resolve) => stream.once('close', () => resolve()));
    return status;
  }

  test('a call whose body does not come, or not whole, is ended', async () => {
    const server = await start({ firstMessageMs: 100 });
    expect(await raw(server, {})).toBe('4');
    expect(await raw(server, {}, Buffer.from([0, 0, 0, 0, 9, 1]))).toBe('4');
    await until(() => server.counts.calls === 0);
    await client(server).check({});
  });

  test('a call whose request never ends is ended, and its stream is closed', async () => {
    const server = await start({ firstMessageMs: 100 });
    const session = dialHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.caPem });
    open.push({ close: () => session.destroy() });
    const whole = Buffer.from([0, 0, 0, 0, 0]);
    const streams = Array.from({ length: 20 }, () => requestOn(session, whole));
    await until(() => server.counts.incomingBytes > 0);
    // They close nothing themselves.
    expect(await Promise.all(streams)).toEqual(Array.from({ length: 20 }, () => '4'));
    expect(server.counts).toMatchObject({ incomingBytes: 0, calls: 0 });
    await client(server).check({});
  });

  test('a call that sends much and never all gives way to others, who lose nothing', async () => {
    const incomingBytesMax = 1024 * 1024;
    const server = await start({ incomingBytesMax, firstMessageMs: 60_000, retryAfterMs: 7 });
    const greedy = dialHttp2(`https://127.0.0.1:${server.port}`, {
      ...{ ca: ca.caPem, localAddress: '127.0.7.1', settings: { enablePush: false } },
    });
    open.push({ close: () => greedy.destroy() });
    const cutShort = Buffer.alloc(60_000);
    cutShort.writeUInt32BE(4_000_000, 1);
    const statuses = Array.from({ length: 60 }, () => requestOn(greedy, cutShort));
    let most = 0;
    await until(() => {
      most = Math.max(most, server.counts.incomingBytes);
      return server.counts.incomingEnded >= 40;
    });
    expect(most).toBeLessThanOrEqual(incomingBytesMax);
    expect(await statuses[0]).toBe('14');
    for (let call = 0; call < 20; call += 1) await client(server).check({});
    greedy.destroy();
    await until(() => server.counts.incomingBytes === 0);
  });

  test('is refused by its headers, and nothing is read of its body', async () => {
    const refuse = () => {
      throw unauthenticated('TOKEN_WRONG', 'no');
    };
    const server = await start({ firstMessageMs: 60_000 }, false, refuse);
    const session = dialHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.caPem });
    open.push({ close: () => session.destroy() });
    const begun = Buffer.alloc(60_000);
    begun.writeUInt32BE(4_000_000, 1);
    const path = '/rackwright.agent.v1.EnrolmentService/IssueCertificate';
    const streams = Array.from({ length: 20 }, () => requestOn(session, begun, path));
    // None of them has ended, nor been closed by its caller.
    expect(await Promise.all(streams)).toEqual(Array.from({ length: 20 }, () => '16'));
    expect(server.counts).toMatchObject({ incomingBytes: 0, calls: 0, strangers: 1 });
    await client(server).check({});
  });

  test('shows who its connection is, when its guard lets it in', async () => {
    const server = await start({});
    await client(server).check({});
    expect(server.counts).toMatchObject({ connections: 1, strangers: 1 });
    await caller(server).issueCertificate({});
    expect(server.counts).toMatchObject({ connections: 2, strangers: 1 });
  });

  test('a call without a token takes no room of those with one, nor does one caller', async () => {
    const named: Guard = (context) => context.header('authorization');
    const limits = { openCallsMax: 1, callsMax: 3, callsPerCallerMax: 2 };
    const server = await start(limits, false, named);
    const health = client(server);
    const known = caller(server);
    const as = (token: string) => ({ headers: { authorization: token } });
    const ignore = (call: Promise<unknown>) => void call.catch(() => undefined);
    ignore(health.check({ service: 'hold' }));
    await until(() => server.counts.calls === 1);
    expect(await reasonOf(health.check({}))).toBe('TOO_MANY_CALLS');
    for (let held = 0; held < 2; held += 1) {
      ignore(known.issueCertificate({ joinToken: 'hold' }, as('a')));
    }
    await until(() => server.counts.calls === 3);
    expect(await reasonOf(health.check({}))).toBe('TOO_MANY_CALLS');
    expect(await reasonOf(known.issueCertificate({}, as('b')))).toBe('answered');
  });

  test('a call of many callers, each with few, finds no room when all have too many', async () => {
    const named: Guard = (context) => context.header('authorization');
    const server = await start(
      { callsMax: 6, callsPerCallerMax: 2, retryAfterMs: 7 },
      false,
      named,
    );
    const known = caller(server);
    const hold = (token: string) =>
      reasonOf(
        known.issueCertificate({ joinToken: 'hold' }, { headers: { authorization: token } }),
      );
    for (let token = 0; token < 12; token += 1) void hold(`${token}`);
    await until(() => server.counts.callsRefused === 6);
    expect(server.counts.calls).toBe(6);
    expect(await hold('another')).toBe('TOO_MANY_CALLS');
    await client(server).check({});
  });

  test('a call of a caller that has many is refused under each of its spellings', async () => {
    const named: Guard = (context) => context.header('authorization')?.replace(/^bearer +/i, '');
    const server = await start({ callsPerCallerMax: 2 }, false, named);
    const known = caller(server);
    const as = (token: string) => ({ headers: { authorization: token } });
    for (const spelled of ['Bearer a', 'bEARER a']) {
      void known.issueCertificate({ joinToken: 'hold' }, as(spelled)).catch(() => undefined);
    }
    await until(() => server.counts.calls === 2);
    expect(await reasonOf(known.issueCertificate({}, as('Bearer  a')))).toBe('TOO_MANY_CALLS');
    expect(await reasonOf(known.issueCertificate({}, as('b')))).toBe('answered');
    expect(server.counts.calls).toBe(2);
  });

  test('a call with headers without end is refused, and the server goes on', async () => {
    const server = await start({});
    const huge = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`x-${index}`, 'y'.repeat(4_000)]),
    );
    expect(await raw(server, huge).catch(() => 'broken off')).not.toBe('0');
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`x-${at}`, 'y']));
    expect(await raw(server, many).catch(() => 'broken off')).not.toBe('0');
    await client(server).check({});
  });

  test('a call for which there is no room hears when to come again', async () => {
    const server = await start({ openCallsMax: 2, retryAfterMs: 1_234 });
    const health = client(server);
    const held = [1, 2].map(() => health.check({ service: 'hold' }).catch(() => undefined));
    await until(() => server.counts.calls === 2);
    const failure = await health.check({}).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiFailure);
    expect((failure as ApiFailure).error).toMatchObject({
      kind: 'unavailable',
      reason: 'TOO_MANY_CALLS',
      retryAfterMs: 1_234,
    });
    expect(server.counts.callsRefused).toBe(1);
    expect(held).toHaveLength(2);
  });

  test('a call that needs no token is rationed by address', async () => {
    const server = await start({ openCallsPerSecond: 1, openCallsBurst: 3 });
    const health = client(server);
    for (let call = 0; call < 3; call += 1) await health.check({});
    const failure = await health.check({}).catch((error: unknown) => error);
    expect((failure as ApiFailure).error).toMatchObject({ reason: 'TOO_MANY_CALLS' });
  });

  test('a call of one service that needs no token takes no slot of those of another', async () => {
    const limits = { allOpenCallsPerSecond: 0.001, allOpenCallsBurst: 1, openCallWaitMs: 50 };
    const openServices = [Health.typeName, agent.EnrolmentService.typeName];
    const server = await start(limits, false, undefined, openServices);
    await caller(server).issueCertificate({});
    expect(await reasonOf(caller(server).issueCertificate({}))).toBe('TOO_MANY_CALLS');
    await client(server).check({});
  });

  test('a call that is refused again and again ends its connection, and no other', async () => {
    const refuse: Guard = (context) => {
      const name = context.header('authorization');
      if (name === undefined) throw unauthenticated('TOKEN_MISSING', 'no');
      return name;
    };
    const limits = { refusalsPerSecond: 1, refusalsBurst: 20, retryAfterMs: 7_000 };
    const server = await start(limits, false, refuse);
    const good = caller(server);
    const as = { headers: { authorization: 'a' } };
    await good.issueCertificate({}, as);
    const session = dialHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.caPem });
    open.push({ close: () => session.destroy() });
    const told = new Promise<string>((resolve) => {
      session.once('goaway', (code, _last, text) => resolve(`${code} ${text}`));
    });
    const gone = new Promise<void>((resolve) => session.once('close', () => resolve()));
    const path = '/rackwright.agent.v1.EnrolmentService/IssueCertificate';
    const streams = Array.from({ length: 21 }, () => requestOn(session, Buffer.alloc(5), path));
    expect(await Promise.all(streams)).toEqual([
      ...Array.from({ length: 20 }, () => '16'),
      // The last one says when to retry.
      '14',
    ]);
    expect(await told).toBe('11 too many calls were refused; come again in 7000 ms');
    await gone;
    expect(server.counts).toMatchObject({ refusedEnded: 1, calls: 0 });
    await good.issueCertificate({}, as);
  });

  test('a call that is refused on a new connection each time ends it at once', async () => {
    const refuse: Guard = () => {
      throw unauthenticated('TOKEN_MISSING', 'no');
    };
    const limits = { refusalsPerAddressPerSecond: 0.001, refusalsPerAddressBurst: 3 };
    const server = await start(limits, false, refuse);
    const reasons: string[] = [];
    for (let each = 0; each < 5; each += 1) {
      reasons.push(await reasonOf(caller(server).issueCertificate({})));
    }
    expect(reasons.slice(0, 3)).toEqual(Array.from({ length: 3 }, () => 'TOKEN_MISSING'));
    expect(reasons.slice(3)).toEqual(['TOO_MANY_REFUSED', 'TOO_MANY_REFUSED']);
    await until(() => server.counts.connections === 3);
    expect(server.counts.refusedEnded).toBe(2);
  });
});
