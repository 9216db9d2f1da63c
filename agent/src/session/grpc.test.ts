/** The session's transport against a real gRPC server with TLS. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, bind } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { type ConnectOptions, type RpcServer, serve } from '@rackwright/rpc';
import { afterEach, expect, test } from 'vitest';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { loadBootCertificate } from '../runner-gateway/index.ts';
import { grpcTransport } from './grpc.ts';

type Response = MessageInitShape<typeof agent.SessionResponseSchema>;

const clock = nodeClock();
const random = nodeRandom();
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A server that carries sessions as `session` says, and how to reach it. */
async function serverWith(
  session: (requests: AsyncIterable<agent.SessionRequest>) => AsyncGenerator<Response>,
): Promise<{ server: RpcServer; options: ConnectOptions }> {
  const certificate = await loadBootCertificate(new MemoryDisk().open().disk, random, '/key');
  const { privateKeyPem, certificatePem } = certificate;
  const server = await serve({
    address: '127.0.0.1',
    port: 0,
    tls: { privateKeyPem, certificateChainPem: certificatePem },
    services: [bind(agent.AgentService, { session: (requests) => session(requests) })],
    log: quietLog,
    clock,
    random,
    limits: { closeGraceMs: 100 },
  });
  closing.push(() => server.close());
  const target = `127.0.0.1:${server.port}`;
  return { server, options: { target, caPem: certificatePem, serverName: 'rackwright-agent' } };
}

/** Dials and notes each message. */
function dial(options: () => ConnectOptions) {
  const messages: agent.SessionResponse['message'][] = [];
  const closed = Promise.withResolvers<string>();
  const first = Promise.withResolvers<void>();
  let returned = false;
  const connection = grpcTransport(options).connect({
    onMessage: ({ message }) => {
      if (!returned) throw new Error('called before connect returned');
      messages.push(message);
      first.resolve();
    },
    onClosed: (reason) => {
      if (!returned) throw new Error('called before connect returned');
      closed.resolve(reason);
    },
  });
  returned = true;
  closing.push(() => connection.close());
  return { connection, messages, closed: closed.promise, first: first.promise };
}

function heartbeat(sequence: bigint): agent.SessionRequest {
  const message = { case: 'heartbeat', value: { sequence } } as const;
  return create(agent.SessionRequestSchema, { message });
}

/** Answers heartbeats until it gets number 3. */
async function* renew(requests: AsyncIterable<agent.SessionRequest>): AsyncGenerator<Response> {
  for await (const { message } of requests) {
    if (message.case !== 'heartbeat') throw new Error(`got ${message.case}`);
    const { sequence: heartbeatSequence } = message.value;
    yield { message: { case: 'leaseRenewal', value: { heartbeatSequence, durationMs: 1 } } };
    if (heartbeatSequence === 3n) return;
  }
}

test('the connection carries messages both ways in order, and reports its end', async () => {
  const { options } = await serverWith(renew);
  const { connection, messages, closed } = dial(() => options);
  for (const sequence of [1n, 2n, 3n]) connection.send(heartbeat(sequence));
  expect(await closed).toBe('the control plane ended the stream');
  const sequences = messages.map((message) =>
    message.case === 'leaseRenewal' ? message.value.heartbeatSequence : message.case,
  );
  expect(sequences).toEqual([1n, 2n, 3n]);
  connection.send(heartbeat(4n));
  connection.close();
});

test('a failed dial says why; the options are asked for at each dial', async () => {
  const { server, options } = await serverWith(renew);
  await server.close();
  let asked = 0;
  const counted = () => {
    asked += 1;
    return options;
  };
  expect(await dial(counted).closed).toMatch(/\S/);
  const broken = () => {
    throw new Error('no certificate');
  };
  expect(await dial(counted).closed).toMatch(/\S/);
  expect(await dial(broken).closed).toBe('no certificate');
  expect(asked).toBe(2);
});

test('the connection trusts only the server with the given certificate', async () => {
  const [{ options: one }, { options: other }] = [await serverWith(renew), await serverWith(renew)];
  const { connection, messages, closed } = dial(() => ({ ...one, caPem: other.caPem }));
  connection.send(heartbeat(1n));
  expect(await closed).toMatch(/\S/);
  expect(messages).toEqual([]);
});

test('the connection leaves the server when it is closed on this side', async () => {
  const left = Promise.withResolvers<void>();
  const { options } = await serverWith(async function* (requests) {
    try {
      yield* renew(requests);
    } finally {
      left.resolve();
    }
  });
  const { connection, first } = dial(() => options);
  connection.send(heartbeat(1n));
  await first;
  connection.close();
  await left.promise;
});

test('the connection gives up a stream that does not accept messages', async () => {
  const { options } = await serverWith(renew);
  const { connection, closed } = dial(() => options);
  for (let count = 0; count < 10_001; count += 1) connection.send(heartbeat(1n));
  expect(await closed).toBe('the stream does not take what is sent');
});
