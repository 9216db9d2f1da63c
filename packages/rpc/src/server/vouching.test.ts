/** When a connection counts as one of a known caller, over real TLS. */

import { bind, permissionDenied } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../client/channel.ts';
import { createClient } from '../client/client.ts';
import { createTestCa, type TestCa } from '../wire/test-pki.ts';
import { type RpcServer, type ServeOptions, serve } from './server.ts';

let ca: TestCa;
const open: { close(): unknown }[] = [];
beforeAll(async () => {
  ca = await createTestCa();
});

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Its handler lets "good" in, as the one of agents' sessions does by their certificates. */
async function start(more: Partial<ServeOptions> = {}): Promise<RpcServer> {
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, log, clock: nodeClock(), random: nodeRandom() },
    tls: { ...(await ca.server()), clientCaPem: ca.caPem },
    services: [
      bind(agent.EnrolmentService, {
        issueCertificate: ({ joinToken }, context) => {
          if (joinToken !== 'good') throw permissionDenied('KEY_REVOKED', 'It was revoked.');
          context.vouch?.();
          return {};
        },
      }),
    ],
    limits: { closeGraceMs: 100 },
    ...more,
  });
  open.push(server);
  return server;
}

async function newAgent(server: RpcServer) {
  const own = await ca.client('rackwright://racks/r1');
  const target = `127.0.0.1:${server.port}`;
  const channel = connect({ target, caPem: ca.caPem, own });
  open.push(channel);
  return createClient(agent.EnrolmentService, channel);
}

describe.each([
  { where: 'where there is no guard', more: {} },
  { where: 'of a service that is open', more: { openServices: [agent.EnrolmentService.typeName] } },
])('a caller $where', ({ more }) => {
  test('is a stranger with a certificate that TLS takes, until its handler vouches', async () => {
    const server = await start(more);
    const caller = await newAgent(server);
    await expect(caller.issueCertificate({ joinToken: 'revoked' })).rejects.toThrow('revoked');
    expect(server.counts).toMatchObject({ connections: 1, strangers: 1 });
    await caller.issueCertificate({ joinToken: 'good' });
    expect(server.counts).toMatchObject({ connections: 1, strangers: 0 });
  });
});

test('a caller that a guard lets in is known, whatever its handler says', async () => {
  const server = await start({ guard: () => 'somebody' });
  const caller = await newAgent(server);
  await expect(caller.issueCertificate({ joinToken: 'x' })).rejects.toThrow('revoked');
  expect(server.counts).toMatchObject({ connections: 1, strangers: 0 });
});
