/** Messages that cost much more to decode than to send, at real servers. */
import { Metadata, type ServiceError } from '@grpc/grpc-js';
import { bind } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { type LogLine, recordingLog } from '@rackwright/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Channel, connect } from '../client/channel.ts';
import { createHealthBoard } from '../standard/health.ts';
import { createTestCa } from '../wire/test-pki.ts';
import { type RpcServer, serve } from './server.ts';

let server: RpcServer;
let channel: Channel;
/** What handlers got. */
const got: string[] = [];
const said: LogLine[] = [];
const log = recordingLog((line) => {
  if (line.level === 'warn' || line.level === 'error') said.push(line);
});

beforeAll(async () => {
  const ca = await createTestCa();
  const issueCertificate = async () => {
    got.push('IssueCertificate');
    return {};
  };
  async function* session(requests: AsyncIterable<unknown>) {
    for await (const _ of requests) {
      got.push('Session');
      yield {};
    }
  }
  server = await serve({
    ...{ address: '127.0.0.1', port: 0, tls: await ca.server(), log },
    ...{ clock: nodeClock(), random: nodeRandom(), limits: { closeGraceMs: 200 } },
    services: [
      createHealthBoard([]).service,
      bind(agent.EnrolmentService, { issueCertificate }),
      bind(runner.RunnerService, { session, exchange: session }),
    ],
  });
  channel = connect({ target: `127.0.0.1:${server.port}`, caPem: ca.caPem });
});

afterAll(async () => {
  channel.close();
  await server.close();
});

/** So many bytes of unknown fields of two bytes each. */
function bomb(bytes: number): Buffer {
  return Buffer.alloc(bytes, Buffer.from([0x78, 0x00]));
}

const asIs = (bytes: Buffer): Buffer => bytes;

function callRaw(path: string, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    channel.grpc.makeUnaryRequest(path, asIs, asIs, bytes, new Metadata(), {}, (error) =>
      resolve(error === null ? 'answered' : `${error.code} ${error.details}`),
    );
  });
}

function sayRaw(...messages: Buffer[]): Promise<string> {
  return new Promise((resolve) => {
    const path = '/rackwright.runner.v1.RunnerService/Session';
    const call = channel.grpc.makeBidiStreamRequest(path, asIs, asIs, new Metadata(), {});
    call.on('data', () => undefined);
    call.on('end', () => resolve('ended'));
    call.on('error', (error: ServiceError) => resolve(`${error.code} ${error.details}`));
    for (const message of messages) call.write(message);
    call.end();
  });
}

const resourceExhausted = 8;
const unary = [
  '/grpc.health.v1.Health/Check',
  '/rackwright.agent.v1.EnrolmentService/IssueCertificate',
];

test.each(unary)('%s takes no message of megabytes from nobody', async (path) => {
  expect(await callRaw(path, bomb(3_800_000))).toMatch(
    new RegExp(`^${resourceExhausted} .* 16384 are taken`),
  );
  expect(got).not.toContain('IssueCertificate');
});

test.each(unary)('%s passes over a few unknown fields', async (path) => {
  expect(await callRaw(path, bomb(8_000))).not.toMatch(`${resourceExhausted} `);
});

test('the first message of a stream is small, and no message holds too many fields', async () => {
  expect(await sayRaw(bomb(3_800_000))).toMatch(/^8 .* 16384 are taken/);
  expect(await sayRaw(bomb(20_000))).toMatch(/^8 .* has 20000 bytes or more; 16384 are taken/);
  expect(got).not.toContain('Session');
  expect(await sayRaw(bomb(100), bomb(3_800_000))).toMatch(
    /^8 .* has 257 fields that this server does not know or more; 256 are taken/,
  );
  expect(got.filter((one) => one === 'Session')).toHaveLength(1);
  expect(said).toEqual([]);
});
