/** Keys, evidence and certificates for the tests of this package. */
import { generateKeyPairSync } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { StorageDeviceSchema, Transport } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { buildStatement, type StatementContext } from './certificate.ts';
import { publicKeyOf, signBytes } from './signature.ts';
import type { Certificate } from './verify.ts';

export function newKey(): { privatePem: string; publicDer: Uint8Array } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicDer: new Uint8Array(publicKey.export({ type: 'spki', format: 'der' })),
  };
}

export const trust = newKey();
export const agentKey = newKey();
export const trustPem = publicKeyOf(trust.privatePem);

/** Evidence of one erased disk, signed by `agentKey`. */
export function evidence(
  change: Partial<agent.DeviceOutcome> = {},
  step: Partial<agent.StepEvidence> = {},
): StatementContext['evidence'] {
  const outcome = create(agent.DeviceOutcomeSchema, {
    device: create(StorageDeviceSchema, {
      device: 'sda',
      transport: Transport.SATA,
      model: 'Model',
      serial: 'SER-1',
      sizeBytes: 1_000_000n,
    }),
    method: agent.ErasureMethod.OVERWRITE,
    verdict: agent.VerdictKind.ERASED,
    placesRead: 1088n,
    bytesRead: 4_456_448n,
    verification: { level: agent.VerificationLevel.SAMPLED, places: 1024n },
    bytesExamined: 1_000_000n,
    challengeBlocksWritten: 64n,
    startTime: timestampFromMs(1_700_000_000_000),
    endTime: timestampFromMs(1_700_000_009_000),
    log: ['write 0 1048576'],
    challengeSeed: new Uint8Array(32).fill(1),
  });
  Object.assign(outcome, change);
  const message = create(agent.StepEvidenceSchema, {
    operationId: 'uid-1/1/2/1',
    hostUid: 'uid-1',
    runnerSession: 'session',
    bootId: 'boot',
    runnerVersion: '0.1.0',
    devices: [outcome],
    toolVersions: { node: '24.21.0', kernel: '6.1' },
    mode: agent.StepMode.RUN,
    identityWitnesses: ['uuid'],
    system: { serial: 'HOST-SERIAL', assetTag: 'A-77' },
  });
  const payload = toBinary(agent.StepEvidenceSchema, Object.assign(message, step));
  const signature = signBytes(payload, agentKey.privatePem);
  return { payload, signature, publicKey: agentKey.publicDer };
}

/** A statement of it. */
export function context(change: Partial<StatementContext> = {}): StatementContext {
  return {
    host: { name: 'hosts/h1', uid: 'uid-1' },
    operationId: 'uid-1/1/2/1',
    useEpoch: 3,
    evidence: evidence(),
    deviceIndex: 0,
    ...change,
  };
}

/** Signed by `trust`. */
export function certify(statement: Uint8Array): Certificate {
  return { statement, signature: signBytes(statement, trust.privatePem) };
}

/** A valid certificate. */
export function certificateOf(change: Partial<StatementContext> = {}): Certificate {
  return certify(buildStatement(context(change)));
}
