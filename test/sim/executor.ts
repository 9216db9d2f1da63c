/**
 * Carries out an agent's operations on simulated machines. The session, the journal and everything
 * above are the production code; this stands where BMC driver and runner gateway stand.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { AgentSession, Executor, OperationContext } from '@rackwright/agent';
import {
  agent,
  BmcIdentitySchema,
  InventorySchema,
  StorageDeviceSchema,
  SystemIdentitySchema,
  Transport,
} from '@rackwright/api';
import type { FinalResult } from '@rackwright/results';
import type { SimProcess } from '@rackwright/sim';
import type { HardwareChance, SimDrive, SimMachine, StepEnd } from './hardware.ts';

const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** The agents' key; the same for every life, as the identity on disk is. */
export const agentPublicKey: Uint8Array = keys.publicKey.export({ type: 'spki', format: 'der' });

export interface ExecutorSurroundings {
  readonly machines: ReadonlyMap<string, SimMachine>;
  readonly process: SimProcess;
  readonly chance: HardwareChance;
  readonly session: () => AgentSession;
}

const runnerAway: FinalResult = {
  kind: 'transientError',
  cause: 'runnerAway',
  message: 'no runner of this boot is connected',
};

/** An executor for one life of the agent. */
export function simExecutor(around: ExecutorSurroundings): Executor {
  const machineOf = (operation: agent.Operation) => {
    const machine = around.machines.get(operation.hostUid);
    if (machine === undefined) throw new Error(`no machine ${operation.hostUid}`);
    return machine;
  };
  for (const machine of around.machines.values()) watchRunner(around, machine);
  return {
    operationKinds: ['verifyAccess', 'setPower', 'inspect', 'runStep'],
    execute: (operation, context) => execute(around, machineOf(operation), operation, context),
    resume: async (operation) => {
      const end = await machineOf(operation).endOf(operation.id);
      return end === undefined
        ? 'interrupted'
        : resultOf(around, machineOf(operation), operation, end);
    },
    ended: () => {},
    forgetHost: () => Promise.resolve(),
  };
}

/** A runner that is up, or comes up, is announced while this life of the agent lasts. */
function watchRunner({ process, session }: ExecutorSurroundings, machine: SimMachine): void {
  machine.onRunner = (runner) => {
    if (!process.alive) return;
    session().publishFacts(machine.uid, {
      runnerReady: {
        hostUid: machine.uid,
        bootOperationId: runner.bootOperationId,
        runnerSession: runner.session,
        bootId: runner.bootId,
      },
    });
  };
  const { runner } = machine;
  if (runner !== undefined) process.clock.after(1_000, () => machine.onRunner(runner));
}

async function execute(
  around: ExecutorSurroundings,
  machine: SimMachine,
  operation: agent.Operation,
  context: OperationContext,
): Promise<FinalResult> {
  const { process, chance } = around;
  await process.answer(chance.around(200), () => undefined);
  if (chance.happens(0.05)) {
    return { kind: 'transientError', cause: 'unreachable', message: 'the BMC did not answer' };
  }
  switch (operation.kind.case) {
    case 'verifyAccess':
      return identity(machine);
    case 'setPower':
      return setPower(around, machine, operation, operation.kind.value, context);
    case 'inspect':
      return inspect(machine, operation.kind.value);
    case 'runStep':
      return runStep(around, machine, operation, operation.kind.value, context);
    default:
      return { kind: 'failed', type: 'unsupported', message: 'not an operation of this agent' };
  }
}

function identity(machine: SimMachine): FinalResult {
  const bmcIdentity = create(BmcIdentitySchema, { guid: machine.guid, serial: machine.uid });
  const observations = create(agent.ObservationsSchema, { bmcIdentity });
  return { kind: 'complete', observations };
}

async function setPower(
  { process, chance }: ExecutorSurroundings,
  machine: SimMachine,
  operation: agent.Operation,
  order: agent.SetPower,
  context: OperationContext,
): Promise<FinalResult> {
  await context.begin();
  if (order.on === true) {
    await context.openGrant({
      macs: order.bootMacs,
      expiresAtMs: process.clock.nowMs() + 1_200_000,
    });
    machine.powerOn(operation.id);
  } else {
    await context.closeGrants();
    machine.powerOff();
  }
  await process.answer(chance.around(1_000), () => undefined);
  return { kind: 'complete' };
}

function inspect(machine: SimMachine, order: agent.Inspect): FinalResult {
  const { runner } = machine;
  if (runner?.bootOperationId !== order.bootOperationId) return runnerAway;
  const inventory = create(InventorySchema, {
    system: create(SystemIdentitySchema, { uuid: machine.guid, serial: machine.uid }),
    devices: machine.drives.map(device),
    runnerSession: runner.session,
    bootId: runner.bootId,
  });
  return { kind: 'complete', observations: create(agent.ObservationsSchema, { inventory }) };
}

function device(drive: SimDrive) {
  const format = drive.kind === 'format';
  return create(StorageDeviceSchema, {
    device: drive.serial,
    serial: drive.serial,
    transport: format ? Transport.NVME : Transport.SATA,
    sizeBytes: 1_048_576n,
    regions: [{ name: drive.serial, sizeBytes: 1_048_576n, logicalBlockBytes: 512 }],
    ...(format ? { nvme: { formatSupported: true, formatsAllNamespaces: true } } : {}),
  });
}

async function runStep(
  around: ExecutorSurroundings,
  machine: SimMachine,
  operation: agent.Operation,
  order: agent.RunStep,
  context: OperationContext,
): Promise<FinalResult> {
  const { process, chance } = around;
  // Between order and begin the control plane may go away for longer than a lease lasts.
  if (chance.happens(0.3)) await process.answer(chance.around(30_000), () => undefined);
  if (machine.runner?.bootOperationId !== order.bootOperationId) return runnerAway;
  await context.begin();
  const serials = order.devices.map((plan) => plan.device?.serial ?? '');
  const mode = order.mode === agent.StepMode.CHECK ? 'check' : 'run';
  if (!machine.order(operation.id, mode, serials)) {
    return { kind: 'retryAfter', reason: 'locked', message: 'the runner is busy', delayMs: 1_000 };
  }
  const end = await machine.endOf(operation.id);
  return end === undefined ? runnerAway : resultOf(around, machine, operation, end);
}

function resultOf(
  { process }: ExecutorSurroundings,
  machine: SimMachine,
  operation: agent.Operation,
  end: StepEnd,
): FinalResult {
  if (end.kind === 'interrupted') {
    return {
      kind: 'failed',
      type: 'interrupted',
      message: end.progress,
      lastProgress: end.progress,
    };
  }
  if (!end.clean) return { kind: 'failed', type: 'notErased', message: 'old data can be read' };
  return { kind: 'complete', evidence: evidence(machine, operation, end, process.clock.nowMs()) };
}

function evidence(
  machine: SimMachine,
  operation: agent.Operation,
  end: Extract<StepEnd, { kind: 'done' }>,
  nowMs: number,
): agent.Evidence {
  const order = operation.kind.case === 'runStep' ? operation.kind.value : undefined;
  const plans = order?.devices ?? [];
  const seed = order?.challengeSeed ?? new Uint8Array();
  const payload = toBinary(
    agent.StepEvidenceSchema,
    create(agent.StepEvidenceSchema, {
      operationId: operation.id,
      hostUid: operation.hostUid,
      runnerSession: machine.runner?.session ?? '',
      bootId: machine.runner?.bootId ?? '',
      mode: end.mode === 'run' ? agent.StepMode.RUN : agent.StepMode.CHECK,
      identityWitnesses: ['uuid'],
      devices: plans.map((plan) => ({
        ...(plan.device === undefined ? {} : { device: plan.device }),
        method: plan.method,
        verdict: agent.VerdictKind.ERASED,
        placesRead: 64n,
        bytesRead: 262_144n,
        startTime: timestampFromMs(nowMs),
        endTime: timestampFromMs(nowMs),
        challengeBlocksWritten: 64n,
        challengeSeed: seed,
      })),
    }),
  );
  const signature = sign('sha256', payload, { key: keys.privateKey, dsaEncoding: 'der' });
  return create(agent.EvidenceSchema, { payload, signature, publicKey: agentPublicKey });
}
