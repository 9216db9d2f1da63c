/** Which agents the agents' port, and enrolment, count as known. */
import { asReplicaId, type CallContext, permissionDenied } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { rigWith } from '../../host/testing/rig.ts';
import { defaultSessionTiming } from '../base/timing.ts';
import { createAgentService } from './service.ts';

async function calling(identify: (context: CallContext) => Promise<string>) {
  const rig = rigWith({});
  const { hosts, registry, shared } = await rig.replica();
  const service = createAgentService({
    ...shared,
    ...{ hosts, registry, timing: defaultSessionTiming, identify },
    ...{ random: nodeRandom(), crashPoint: () => undefined, replicaId: asReplicaId('a') },
  });
  const over = new AbortController();
  let vouched = 0;
  const context: CallContext = {
    ...{ method: '', peerAddress: 'r1', deadlineMs: Infinity, signal: over.signal },
    header: () => undefined,
    peerCertificate: () => undefined,
    vouch: () => {
      vouched += 1;
      over.abort();
    },
  };
  const nothing = async function* () {};
  const session = service.session(nothing(), context)[Symbol.asyncIterator]();
  return { session, vouched: () => vouched };
}

test('an agent is known once its key has been found to be its rack’s', async () => {
  const { session, vouched } = await calling(() => Promise.resolve('r1'));
  await session.next();
  expect(vouched()).toBe(1);
});

test('an agent whose key was revoked is not, whatever TLS says of its certificate', async () => {
  const { session, vouched } = await calling(() =>
    Promise.reject(permissionDenied('AGENT_KEY_REVOKED', 'It was revoked.')),
  );
  await expect(session.next()).rejects.toThrow('revoked');
  expect(vouched()).toBe(0);
});
