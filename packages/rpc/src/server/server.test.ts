import { createServer } from 'node:http';
import { connect as netConnect } from 'node:net';
import {
  ApiFailure,
  type BoundService,
  bind,
  type CallContext,
  type Handlers,
  Health,
  HostService,
  invalidArgument,
  ServerReflection,
  HealthCheckResponse_ServingStatus as ServingStatus,
  unauthenticated,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { type LogLine, recordingLog } from '@rackwright/platform/testing';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Channel, type ConnectOptions, connect } from '../client/channel.ts';
import { createClient } from '../client/client.ts';
import { fetchPinnedCertificate } from '../probe/pinned-certificate.ts';
import { createHealthBoard } from '../standard/health.ts';
import { createReflection } from '../standard/reflection.ts';
import { createTestCa, type TestCa } from '../wire/test-pki.ts';
import type { ServerTls } from '../wire/tls.ts';
import { type RpcServer, type ServeOptions, serve } from './server.ts';

const clock = nodeClock();
let ca: TestCa;
let foreignCa: TestCa;
const open: { close(): unknown }[] = [];
let lines: LogLine[] = [];

const log = recordingLog((line) => void lines.push(line));

beforeAll(async () => {
  [ca, foreignCa] = await Promise.all([createTestCa(), createTestCa()]);
});

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
  lines = [];
});

async function start(
  services: readonly BoundService[],
  more: Partial<ServeOptions> = {},
): Promise<RpcServer> {
  const server = await serve({
    address: '127.0.0.1',
    port: 0,
    tls: await ca.server(),
    services,
    log,
    clock,
    random: nodeRandom(),
    limits: { closeGraceMs: 200 },
    ...more,
  });
  open.push(server);
  return server;
}

async function demanding(): Promise<ServerTls> {
  return { ...(await ca.server()), clientCaPem: ca.caPem };
}

function dial(server: RpcServer, more: Partial<ConnectOptions> = {}): Channel {
  const channel = connect({ target: `127.0.0.1:${server.port}`, caPem: ca.caPem, ...more });
  open.push(channel);
  return channel;
}

/** A health service whose check is `check`; the simplest unary method at hand. */
function health(check: Handlers<typeof Health>['check']): BoundService {
  return bind(Health, {
    check,
    list: () => ({}),
    watch: async function* () {},
  });
}

async function failureOf(promise: Promise<unknown>): Promise<ApiFailure> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ApiFailure) return error;
  throw new Error(`expected an ApiFailure, got ${String(error)}`);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe('a unary call', () => {
  test('reaches its handler and brings back the answer', async () => {
    const server = await start([
      health(({ service }) => ({
        status: service === 'a' ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
      })),
    ]);
    const client = createClient(Health, dial(server));
    expect((await client.check({ service: 'a' })).status).toBe(ServingStatus.SERVING);
    expect((await client.check({ service: 'b' })).status).toBe(ServingStatus.NOT_SERVING);
  });

  test('ends with the failure that the handler throws, violations included', async () => {
    const violations = [
      { field: 'host.spec.rack', description: 'is missing' },
      { field: 'host_id', description: 'is too long' },
    ];
    const server = await start([
      health(() => {
        throw invalidArgument(violations);
      }),
    ]);
    const { error } = await failureOf(createClient(Health, dial(server)).check({}));
    expect(error).toMatchObject({ kind: 'invalidArgument', violations });
  });

  test('hides an unexpected error behind a reference that the log has too', async () => {
    const server = await start([
      health(() => {
        throw new Error('password hunter2 in /var/lib/secret');
      }),
    ]);
    const { error } = await failureOf(createClient(Health, dial(server)).check({}));
    expect(error.kind).toBe('internal');
    expect(JSON.stringify(error)).not.toMatch(/hunter2|secret/);
    const reference = error.kind === 'internal' ? error.reference : '';
    expect(reference).toMatch(/^[0-9a-f]{32}$/);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.fields).toMatchObject({ reference, method: '/grpc.health.v1.Health/Check' });
    expect(String(lines[0]?.error)).toContain('hunter2');
  });

  test('logs the cause of a failure and keeps it off the wire', async () => {
    const server = await start([
      health(() => {
        const said = { kind: 'unavailable', message: 'Try again.', reason: 'STORE' } as const;
        throw new ApiFailure({ ...said, retryAfterMs: 1_500 }, new Error('disk sda1 is full'));
      }),
    ]);
    const { error } = await failureOf(createClient(Health, dial(server)).check({}));
    expect(error).toMatchObject({ kind: 'unavailable', retryAfterMs: 1_500 });
    expect(JSON.stringify(error)).not.toContain('sda1');
    expect(String(lines[0]?.error)).toContain('sda1');
  });

  test('sees headers, deadline and the end of its caller', async () => {
    let seen: CallContext | undefined;
    const aborted = Promise.withResolvers<void>();
    const server = await start([
      health(async (_request, context) => {
        seen = context;
        context.signal.addEventListener('abort', () => aborted.resolve());
        await aborted.promise;
        return {};
      }),
    ]);
    const deadlineMs = clock.nowMs() + 5_000;
    const call = createClient(Health, dial(server)).check(
      {},
      { headers: { 'x-request': '7' }, deadlineMs },
    );
    expect((await failureOf(call)).error.kind).toBe('deadlineExceeded');
    await aborted.promise;
    expect(seen?.header('x-request')).toBe('7');
    expect(seen?.header('x-absent')).toBeUndefined();
    expect(Math.abs((seen?.deadlineMs ?? 0) - deadlineMs)).toBeLessThan(2_000);
  });

  test('can be left by its caller', async () => {
    const server = await start([health(() => new Promise(() => undefined))]);
    const leave = new AbortController();
    const call = createClient(Health, dial(server)).check({}, { signal: leave.signal });
    leave.abort();
    expect((await failureOf(call)).error.kind).toBe('cancelled');
  });

  test('is refused when the message is larger than the limit', async () => {
    const server = await start([health(() => ({}))], { limits: { messageBytesMax: 1_000 } });
    const call = createClient(Health, dial(server)).check({ service: 'x'.repeat(2_000) });
    expect((await failureOf(call)).error.kind).toBe('resourceExhausted');
  });

  test('a call with bytes that are no message is the caller’s mistake', async () => {
    const server = await start([health(() => ({}))]);
    const channel = dial(server);
    const code = await new Promise((resolve) => {
      channel.grpc.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
        Buffer.from([0xff, 0xff, 0xff]),
        (error) => resolve(error?.code),
      );
    });
    expect(code).toBe(3);
  });
});

describe('who may call', () => {
  test('the guard refuses before the handler, except for open services', async () => {
    let calls = 0;
    const board = createHealthBoard([]);
    const reflection = createReflection([Health]);
    const server = await start([board.service, reflection], {
      openServices: [Health.typeName],
      guard: (context) => {
        calls += 1;
        if (context.header('authorization') !== 'Bearer right') {
          throw unauthenticated('TOKEN', 'Send the admin token.');
        }
      },
    });
    const channel = dial(server);
    await createClient(Health, channel).check({});
    expect(calls).toBe(0);
    const ask = async function* () {
      yield { messageRequest: { case: 'listServices', value: '' } } as const;
    };
    const client = createClient(ServerReflection, channel);
    const refused = await failureOf(collect(client.serverReflectionInfo(ask())));
    expect(refused.error).toMatchObject({ kind: 'unauthenticated', reason: 'TOKEN' });
    const headers = { authorization: 'Bearer right' };
    expect(await collect(client.serverReflectionInfo(ask(), { headers }))).toHaveLength(1);
  });

  test('a client certificate of our CA is seen with its key and names', async () => {
    let seen: ReturnType<CallContext['peerCertificate']>;
    const remember = health((_request, context) => {
      seen = context.peerCertificate();
      return {};
    });
    const server = await start([remember], { tls: await demanding() });
    const own = await ca.client('rackwright://racks/r1');
    await createClient(Health, dial(server, { own })).check({});
    expect(seen?.uris).toEqual(['rackwright://racks/r1']);
    expect(seen?.publicKeySha256).toMatch(/^[0-9a-f]{64}$/);
    expect(seen?.fingerprintSha256).not.toBe(seen?.publicKeySha256);
  });

  test('no certificate, an expired and a forged one are refused, others undisturbed', async () => {
    let calls = 0;
    const count = health(() => {
      calls += 1;
      return {};
    });
    const server = await start([count], { tls: await demanding() });
    const valid = createClient(
      Health,
      dial(server, { own: await ca.client('rackwright://racks/r1') }),
    );
    await valid.check({});
    const refused = [
      undefined,
      await ca.client('rackwright://racks/r1', -1_000),
      await foreignCa.client('rackwright://racks/r1'),
    ];
    for (const own of refused) {
      const client = createClient(Health, dial(server, own === undefined ? {} : { own }));
      expect((await failureOf(client.check({}))).error.kind).toBe('unavailable');
      await valid.check({});
    }
    expect(calls).toBe(1 + refused.length);
  });

  test('a client trusts only the CA and the name that it was given', async () => {
    const server = await start([health(() => ({}))]);
    const wrongCa = createClient(Health, dial(server, { caPem: foreignCa.caPem })).check({});
    expect((await failureOf(wrongCa)).error.kind).toBe('unavailable');
    const wrongName = createClient(Health, dial(server, { serverName: 'other.example' })).check({});
    expect((await failureOf(wrongName)).error.kind).toBe('unavailable');
  });

  test('plain text is refused', async () => {
    const server = await start([health(() => ({}))]);
    const received = await new Promise<number>((resolve) => {
      let bytes = 0;
      const socket = netConnect(server.port, '127.0.0.1', () => {
        socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00');
      });
      socket.on('data', (chunk) => {
        // A TLS alert record is all that may come back.
        expect(chunk[0]).toBe(0x15);
        bytes += chunk.length;
      });
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(bytes));
    });
    expect(received).toBeLessThan(16);
  });

  test('a new certificate is used for new connections without a restart', async () => {
    const server = await start([health(() => ({}))]);
    const before = dial(server);
    await createClient(Health, before).check({});
    server.replaceCertificate(await ca.server([{ type: 'dns', value: 'new.example' }]));
    await createClient(Health, before).check({});
    const after = dial(server, { serverName: 'new.example' });
    await createClient(Health, after).check({});
    expect((await failureOf(createClient(Health, dial(server)).check({}))).error.kind).toBe(
      'unavailable',
    );
  });
});

describe('streams', () => {
  test('a bidirectional stream carries messages both ways in order', async () => {
    const server = await start([createReflection([Health])]);
    const names = ['grpc.health.v1.Health', 'nothing.At.All', 'grpc.health.v1.Health.Check'];
    const client = createClient(ServerReflection, dial(server));
    const ask = async function* () {
      for (const value of names) {
        yield { messageRequest: { case: 'fileContainingSymbol', value } } as const;
      }
    };
    const answers = await collect(client.serverReflectionInfo(ask()));
    expect(answers.map(({ messageResponse }) => messageResponse.case)).toEqual([
      'fileDescriptorResponse',
      'errorResponse',
      'fileDescriptorResponse',
    ]);
  });

  test('a watcher is slowed to its own pace and stopped when it leaves', async () => {
    let made = 0;
    const stopped = Promise.withResolvers<void>();
    const server = await start([
      bind(Health, {
        check: () => ({}),
        list: () => ({}),
        watch: async function* () {
          try {
            for (; made < 1_000_000; made += 1) yield { status: ServingStatus.SERVING };
          } finally {
            stopped.resolve();
          }
        },
      }),
    ]);
    let received = 0;
    for await (const _ of createClient(Health, dial(server)).watch({})) {
      received += 1;
      if (received === 10) await new Promise((resolve) => clock.after(200, () => resolve(0)));
      if (received === 20) break;
    }
    await stopped.promise;
    expect(made).toBeLessThan(200_000);
  });

  test('a failure in the middle of a stream arrives after what was sent before', async () => {
    const server = await start([
      bind(Health, {
        check: () => ({}),
        list: () => ({}),
        watch: async function* () {
          yield { status: ServingStatus.SERVING };
          throw new ApiFailure({ kind: 'outOfRange', message: 'Start over.', reason: 'COMPACTED' });
        },
      }),
    ]);
    const seen: number[] = [];
    const failure = await failureOf(
      (async () => {
        for await (const { status } of createClient(Health, dial(server)).watch({})) {
          seen.push(status);
        }
      })(),
    );
    expect(seen).toEqual([ServingStatus.SERVING]);
    expect(failure.error).toMatchObject({ kind: 'outOfRange', reason: 'COMPACTED' });
  });

  test('closing the server ends a waiting stream with unavailable', async () => {
    const board = createHealthBoard([]);
    const server = await start([board.service]);
    const watching = Promise.withResolvers<void>();
    const failure = failureOf(
      (async () => {
        for await (const _ of createClient(Health, dial(server)).watch({})) watching.resolve();
      })(),
    );
    await watching.promise;
    await server.close();
    expect((await failure).error.kind).toBe('unavailable');
  });

  test('a request stream that fails on our side ends with that very error', async () => {
    const server = await start([createReflection([Health])]);
    const mine = new Error('my own');
    const ask = async function* () {
      yield { messageRequest: { case: 'listServices', value: '' } } as const;
      throw mine;
    };
    const client = createClient(ServerReflection, dial(server));
    await expect(collect(client.serverReflectionInfo(ask()))).rejects.toBe(mine);
  });
});

describe('health and reflection', () => {
  test('health answers per service, and watchers see each change once', async () => {
    const board = createHealthBoard([HostService.typeName]);
    const server = await start([board.service]);
    const client = createClient(Health, dial(server));
    expect((await client.check({})).status).toBe(ServingStatus.NOT_SERVING);
    expect((await failureOf(client.check({ service: 'x' }))).error.kind).toBe('notFound');
    const seen: ServingStatus[] = [];
    for await (const { status } of client.watch({ service: HostService.typeName })) {
      seen.push(status);
      if (seen.length === 1) board.set(HostService.typeName, true);
      if (seen.length === 2) {
        board.set('', true);
        board.set(HostService.typeName, false);
      }
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([
      ServingStatus.NOT_SERVING,
      ServingStatus.SERVING,
      ServingStatus.NOT_SERVING,
    ]);
    expect(Object.keys((await client.list({})).statuses).sort()).toEqual([
      '',
      HostService.typeName,
    ]);
  });

  test('reflection lists services and gives files with all their imports', async () => {
    const server = await start([createReflection([HostService])]);
    const ask = async function* () {
      yield { messageRequest: { case: 'listServices', value: '*' } } as const;
      yield {
        messageRequest: { case: 'fileByFilename', value: 'rackwright/v1/host.proto' },
      } as const;
      yield {
        messageRequest: { case: 'fileContainingSymbol', value: 'rackwright.v1.Host' },
      } as const;
      yield {};
    };
    const client = createClient(ServerReflection, dial(server));
    const [list, file, symbol, nothing] = await collect(client.serverReflectionInfo(ask()));
    expect(list?.messageResponse).toMatchObject({
      value: {
        service: [
          { name: 'rackwright.v1.HostService' },
          { name: 'grpc.reflection.v1.ServerReflection' },
        ],
      },
    });
    const files =
      file?.messageResponse.case === 'fileDescriptorResponse'
        ? file.messageResponse.value.fileDescriptorProto
        : [];
    expect(files.length).toBeGreaterThanOrEqual(5);
    expect(symbol?.messageResponse).toEqual(file?.messageResponse);
    expect(nothing?.messageResponse).toMatchObject({ value: { errorCode: 3 } });
  });
});

describe('first contact by fingerprint', () => {
  test('finds the CA in the chain and refuses every other', async () => {
    const server = await start([health(() => ({}))]);
    const probe = { host: '127.0.0.1', port: server.port, timeoutMs: 5_000, clock };
    const pem = await fetchPinnedCertificate({ ...probe, sha256: ca.caSha256 });
    await createClient(Health, dial(server, { caPem: pem })).check({});
    const refused = await failureOf(
      fetchPinnedCertificate({ ...probe, sha256: foreignCa.caSha256 }),
    );
    expect(refused.error).toMatchObject({
      kind: 'unauthenticated',
      reason: 'FINGERPRINT_MISMATCH',
    });
    expect(refused.message).toContain(ca.caSha256);
  });

  test('says when nothing that speaks TLS is there', async () => {
    const plain = createServer((_request, response) => response.end('no'));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    open.push(plain);
    const address = plain.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const probe = { host: '127.0.0.1', port, timeoutMs: 5_000, clock, sha256: ca.caSha256 };
    expect((await failureOf(fetchPinnedCertificate(probe))).error.kind).toBe('unavailable');
  });
});
