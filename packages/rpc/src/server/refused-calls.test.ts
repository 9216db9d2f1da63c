/** Callers that go on while they are refused; see `floods.test.ts` for large floods. */

import { ApiFailure, bind, notFound, unauthenticated } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { connect } from '../client/channel.ts';
import { createClient } from '../client/client.ts';
import { createTestCa } from '../wire/test-pki.ts';
import { serve } from './server.ts';

const clock = nodeClock();
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error as ApiFailure).error.reason,
  );

test('a connection ends of which a handler refuses the caller, again and again', async () => {
  const ca = await createTestCa();
  const hostile = await ca.client('rackwright://racks/r1');
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, log, clock, random: nodeRandom() },
    tls: { ...(await ca.server()), clientCaPem: ca.caPem },
    services: [
      bind(agent.EnrolmentService, {
        issueCertificate: ({ joinToken }) => {
          if (joinToken === 'mine') throw notFound('racks/r1');
          throw unauthenticated('KEY_REVOKED', 'no');
        },
      }),
    ],
    limits: { closeGraceMs: 100, refusalsPerSecond: 0.001, refusalsBurst: 3 },
  });
  const channel = connect({
    target: `127.0.0.1:${server.port}`,
    ...{ caPem: ca.caPem, own: hostile },
  });
  const revoked = createClient(agent.EnrolmentService, channel);
  // An error about the request's content, and not about the caller, costs it nothing.
  for (let each = 0; each < 5; each += 1) {
    expect(await reasonOf(revoked.issueCertificate({ joinToken: 'mine' }))).toMatch(/NOT_FOUND/);
  }
  const reasons: string[] = [];
  for (let each = 0; each < 4; each += 1)
    reasons.push(await reasonOf(revoked.issueCertificate({})));
  expect(reasons).toEqual([...Array<string>(3).fill('KEY_REVOKED'), 'TOO_MANY_REFUSED']);
  expect(server.counts.refusedEnded).toBe(1);
  channel.close();
  await server.close();
});

test('refusals have no stack, and other failures have one', () => {
  expect(unauthenticated('TOKEN_MISSING', 'no').stack).not.toContain('    at ');
  expect(new ApiFailure({ kind: 'cancelled', message: '', reason: '' }).stack).toContain('at ');
});
