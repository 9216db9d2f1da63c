/**
 * An agent whose machines are instant: identity, mTLS, session, work lease and journal with fsync
 * are the production code; BMCs and runners answer at once. Runs as a process of its own.
 *
 *     agent.ts STATE_FOLDER
 */
import { createHash, sign } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AgentSession,
  type Executor,
  grpcTransport,
  IdentityFiles,
  Journal,
  type OperationContext,
  readKey,
} from '@rackwright/agent';
import {
  agent,
  BmcIdentitySchema,
  InventorySchema,
  StorageDeviceSchema,
  SystemIdentitySchema,
  Transport,
} from '@rackwright/api';
import { nodeClock, nodeDisk, nodeLog, nodeRandom } from '@rackwright/platform/node';
import type { FinalResult } from '@rackwright/results';

const [folder = ''] = process.argv.slice(2);
const clock = nodeClock();
const disk = nodeDisk();
const random = nodeRandom();
const log = nodeLog('warn');
const identity = await new IdentityFiles(disk, folder).load();
if (identity === undefined) throw new Error(`${folder} holds no identity: join first`);
const key = readKey(identity.privateKeyPem);
const publicKey = key.publicKeyDer;
const runners = new Map<string, string>();

const journal = await Journal.open({ disk, path: `${folder}/journal`, clock, random, log });
const session = new AgentSession({
  journal,
  disk,
  snapshotPath: `${folder}/boot-snapshot`,
  clock,
  random,
  log,
  crashPoint: () => {},
  agentVersion: 'bench',
  transport: grpcTransport(() => ({
    target: identity.agentEndpoint,
    caPem: identity.caCertificatePem,
    own: {
      privateKeyPem: identity.privateKeyPem,
      certificateChainPem: identity.certificatePem,
    },
  })),
});
const executor: Executor = {
  operationKinds: ['verifyAccess', 'setPower', 'inspect', 'runStep'],
  execute: (operation, context) => execute(operation, context),
  resume: () => 'interrupted',
  ended: () => {},
  forgetHost: () => Promise.resolve(),
};
await session.start(executor);
process.once('SIGTERM', () => {
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ cpuMs: (user + system) / 1000 })}\n`, () => {
    process.exit(0);
  });
});

async function execute(
  operation: agent.Operation,
  context: OperationContext,
): Promise<FinalResult> {
  const { hostUid, kind } = operation;
  switch (kind.case) {
    case 'verifyAccess': {
      const bmcIdentity = create(BmcIdentitySchema, { guid: guidOf(hostUid), serial: hostUid });
      return {
        kind: 'complete',
        observations: create(agent.ObservationsSchema, { bmcIdentity }),
      };
    }
    case 'setPower':
      await setPower(operation, kind.value, context);
      return { kind: 'complete' };
    case 'inspect':
      return { kind: 'complete', observations: inventory(hostUid) };
    case 'runStep':
      await context.begin();
      return { kind: 'complete', evidence: evidence(operation, kind.value) };
    default:
      return { kind: 'failed', type: 'unsupported', message: 'not an operation of this agent' };
  }
}

async function setPower(
  operation: agent.Operation,
  order: agent.SetPower,
  context: OperationContext,
): Promise<void> {
  const { hostUid } = operation;
  await context.begin();
  if (order.on !== true) {
    await context.closeGrants();
    const runner = runners.get(hostUid);
    if (runner !== undefined) session.runnerGone(hostUid, runner);
    return;
  }
  await context.openGrant({ macs: order.bootMacs, expiresAtMs: clock.nowMs() + 60_000 });
  runners.set(hostUid, operation.id);
  session.publishFacts(hostUid, {
    runnerReady: {
      hostUid,
      bootOperationId: operation.id,
      runnerSession: operation.id,
      bootId: operation.id,
    },
  });
}

function guidOf(hostUid: string): Uint8Array {
  return createHash('sha256').update(hostUid).digest().subarray(0, 16);
}

/** Two devices a host. */
function devicesOf(hostUid: string) {
  return ['A', 'B'].map((name) =>
    create(StorageDeviceSchema, {
      device: name,
      serial: `${hostUid}-${name}`,
      transport: Transport.SATA,
      discardSupported: true,
      sizeBytes: 1_048_576n,
      regions: [{ name, sizeBytes: 1_048_576n, logicalBlockBytes: 512 }],
    }),
  );
}

function inventory(hostUid: string): agent.Observations {
  const runnerSession = runners.get(hostUid) ?? '';
  return create(agent.ObservationsSchema, {
    inventory: create(InventorySchema, {
      system: create(SystemIdentitySchema, { uuid: guidOf(hostUid), serial: hostUid }),
      devices: devicesOf(hostUid),
      runnerSession,
      bootId: runnerSession,
    }),
  });
}

function evidence(operation: agent.Operation, order: agent.RunStep): agent.Evidence {
  const time = timestampFromMs(clock.nowMs());
  const runnerSession = runners.get(operation.hostUid) ?? '';
  const payload = toBinary(
    agent.StepEvidenceSchema,
    create(agent.StepEvidenceSchema, {
      operationId: operation.id,
      hostUid: operation.hostUid,
      runnerSession,
      bootId: runnerSession,
      mode: agent.StepMode.RUN,
      identityWitnesses: ['uuid'],
      devices: order.devices.map((plan) => ({
        ...(plan.device === undefined ? {} : { device: plan.device }),
        method: plan.method,
        verdict: agent.VerdictKind.ERASED,
        placesRead: 1088n,
        bytesRead: 4_456_448n,
        challengeBlocksWritten: 64n,
        startTime: time,
        endTime: time,
        challengeSeed: order.challengeSeed,
      })),
    }),
  );
  const signature = sign('sha256', payload, { key: key.privateKey, dsaEncoding: 'der' });
  return create(agent.EvidenceSchema, { payload, signature, publicKey });
}
