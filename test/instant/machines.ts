/**
 * Machines that answer at once, behind the production session: what is left is the work of control
 * plane and agent. Whoever needs them to take a while says so.
 */
import { createHash, sign } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { AgentSession, Executor, OperationContext, readKey } from '@rackwright/agent';
import {
  deviceFactsOf,
  impliedReading,
  methodOf,
  orderedVerification,
  verificationToWire,
} from '@rackwright/erasure';
import {
  agent,
  BmcIdentitySchema,
  type HostUid,
  InventorySchema,
  StorageDeviceSchema,
  SystemIdentitySchema,
  Transport,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { FinalResult } from '@rackwright/results';

/** What the machines of one agent need. */
export interface InstantMachines {
  /** Asked when an operation runs; the session needs the executor first. */
  readonly session: () => AgentSession;
  readonly clock: Clock;
  /** Signs evidence. */
  readonly key: ReturnType<typeof readKey>;
  /** By host uid: the boot in which its runner is; it outlives sessions. */
  readonly runners: Map<string, string>;
  /** Called before each operation, and awaited. */
  readonly before?: (operation: agent.Operation) => Promise<void>;
  /** What the agent says that it runs itself, beside what its runners do; absent: nothing. */
  readonly steps?: readonly agent.StepDescription[];
}

/** Carries out what it is told, at once. */
export function instantExecutor(machines: InstantMachines): Executor {
  return {
    operationKinds: ['verifyAccess', 'setPower', 'inspect', 'runStep'],
    ...(machines.steps === undefined ? {} : { steps: machines.steps }),
    execute: async (operation, context) => {
      await machines.before?.(operation);
      return execute(machines, operation, context);
    },
    resume: () => 'interrupted',
    noteReportDurable: () => {},
    forgetHost: () => Promise.resolve(),
  };
}

async function execute(
  machines: InstantMachines,
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
      await setPower(machines, operation, kind.value, context);
      return { kind: 'complete' };
    case 'inspect':
      return { kind: 'complete', observations: inventory(machines, hostUid) };
    case 'runStep':
      await context.begin();
      return { kind: 'complete', evidence: evidence(machines, operation, kind.value) };
    default:
      return { kind: 'failed', type: 'unsupported', message: 'not an operation of this agent' };
  }
}

async function setPower(
  { session, runners, clock }: InstantMachines,
  operation: agent.Operation,
  order: agent.SetPower,
  context: OperationContext,
): Promise<void> {
  const { hostUid } = operation;
  await context.begin();
  if (order.on !== true) {
    await context.closeGrants();
    const runner = runners.get(hostUid);
    if (runner !== undefined) session().noteRunnerGone(hostUid, runner);
    return;
  }
  await context.openGrant({ macs: order.bootMacs, expiresAtMs: clock.nowMs() + 60_000 });
  runners.set(hostUid, operation.id);
  session().reportFacts(hostUid, {
    runnerReady: {
      hostUid,
      bootOperationId: operation.id,
      runnerSession: operation.id,
      bootId: operation.id,
    },
  });
}

function guidOf(hostUid: HostUid): Uint8Array {
  return createHash('sha256').update(hostUid).digest().subarray(0, 16);
}

/** Two devices a host. */
function devicesOf(hostUid: HostUid) {
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

function inventory({ runners }: InstantMachines, hostUid: HostUid): agent.Observations {
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

function evidence(
  { clock, key, runners }: InstantMachines,
  operation: agent.Operation,
  order: agent.RunStep,
): agent.Evidence {
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
        ...countsOf(plan, order.challengeSeed),
        startTime: time,
        endTime: time,
        challengeSeed: order.challengeSeed,
      })),
    }),
  );
  const signature = sign('sha256', payload, { key: key.privateKey, dsaEncoding: 'der' });
  return create(agent.EvidenceSchema, { payload, signature, publicKey: key.publicKeyDer });
}

/** What reading back as ordered counts. */
function countsOf(plan: agent.DevicePlan, seed: Uint8Array) {
  if (plan.device === undefined) throw new Error('the order names no device');
  const verification = orderedVerification(plan);
  const method = methodOf(plan.method) ?? 'overwrite';
  const counts = impliedReading(deviceFactsOf(plan.device), method, seed, plan);
  return {
    verification: verificationToWire(verification),
    placesRead: BigInt(counts.placesRead),
    bytesRead: BigInt(counts.bytesRead),
    bytesExamined: BigInt(counts.bytesExamined),
    challengeBlocksWritten: BigInt(counts.challengeBlocks),
  };
}
