/** Which callers of enrolment count as known. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  agent,
  type CallContext,
  parseJoinToken,
  signCertificateProof,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Fixture, failureOf, startFixture } from '../services/rpc.fixture.ts';
import { createEnrolmentService } from './enrolment.ts';

let fixture: Fixture;
beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture.stop());

test('an agent is known that gets a certificate, and one that gets none is not', async () => {
  const { controlPlane, store, racks } = fixture;
  await racks.createRack({ rackId: 'r1' });
  const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
  const { handlers } = createEnrolmentService({
    ...{ store, identity: controlPlane.identity, agentEndpoint: 'cp.example:7441', log },
    random: nodeRandom(),
    rackKeys: { rackOf: () => undefined, noteWritten: () => undefined },
  });
  let vouched = 0;
  const context: CallContext = {
    ...{ method: '', peerAddress: '', deadlineMs: Infinity, signal: new AbortController().signal },
    header: () => undefined,
    peerCertificate: () => undefined,
    vouch: () => {
      vouched += 1;
    },
  };
  const ask = async (joinToken: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = publicKey.export({ type: 'spki', format: 'der' });
    const nonce = randomBytes(16);
    const signature = signCertificateProof(privateKey, key, nonce);
    const request = { publicKey: key, nonce, signature, joinToken, rack: '' };
    return await (
      handlers[agent.EnrolmentService.method.issueCertificate.localName] as (
        ...of: [typeof request, CallContext]
      ) => Promise<unknown>
    )(request, context);
  };
  await failureOf(ask('r1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'));
  expect(vouched).toBe(0);
  await ask(parseJoinToken(token)?.secretPart ?? '');
  expect(vouched).toBe(1);
});
