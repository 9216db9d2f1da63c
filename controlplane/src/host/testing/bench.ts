/**
 * A test bench for one host: drives the pure state machine with hand-made events, with a real agent
 * key and real evidence. For tests of the machine only.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { deviceFactsOf, impliedCounts, methodOf } from '@rackwright/erasure';
import {
  agent,
  asIncarnation,
  BmcIdentitySchema,
  type FailureName,
  failureTypeOf,
  HostGoal,
  type HostSpec,
  HostSpecSchema,
  HostState,
  type HostStatus,
  InventorySchema,
  type OperationId,
  PowerMismatchPolicy,
  type Run,
  RunPhase,
  type StorageDevice,
  StorageDeviceSchema,
  SystemIdentitySchema,
  store,
  Transport,
  userActor,
} from '@rackwright/messages';
import { namesOf } from '../erasure/certify.ts';
import { decideHost } from '../machine.ts';
import { isBootStep } from '../pass/step-names.ts';
import { defaultTiming } from '../pass/timing.ts';
import type {
  HostDecision,
  HostEffect,
  HostEvent,
  HostRequest,
  HostSnapshot,
} from '../pass/types.ts';

export const startMs = Date.UTC(2026, 0, 1);
export const uuid = Uint8Array.from({ length: 16 }, (_, index) => index + 1);

export const virtioDisk = create(StorageDeviceSchema, {
  device: 'vda',
  transport: Transport.VIRTIO,
  serial: 'DISK-1',
  sizeBytes: 67_108_864n,
  discardSupported: true,
  regions: [{ name: 'vda', sizeBytes: 67_108_864n, logicalBlockBytes: 512 }],
});

export const nvmeDisk = create(StorageDeviceSchema, {
  device: 'nvme0',
  transport: Transport.NVME,
  serial: 'NVME-1',
  sizeBytes: 67_108_864n,
  regions: [{ name: 'nvme0n1', sizeBytes: 67_108_864n, logicalBlockBytes: 512 }],
  nvme: { formatSupported: true, cryptoEraseSupported: false, formatsAllNamespaces: true },
});

export interface Bench {
  record: store.HostRecord;
  nowMs: number;
  snapshot: Omit<HostSnapshot, 'nowMs'>;
  /** Folds an event in; throws when it is refused. Returns the effects. */
  apply(event: HostEvent): readonly HostEffect[];
  /** Folds an event in and returns the outcome, without keeping it. */
  try(event: HostEvent): HostDecision;
  request(request: HostRequest): readonly HostEffect[];
  /** Reports a result of the operation in the slot. */
  report(result: agent.Report['result'], operationId?: OperationId): readonly HostEffect[];
  runnerReady(): void;
  evidence(
    devices: MessageInitShape<typeof agent.DeviceOutcomeSchema>[],
    changes?: EvidenceChanges,
  ): agent.Evidence;
  /** The operation in the slot. */
  operation(): agent.Operation;
  removed: boolean;
}

export function newHost(
  spec: Exclude<MessageInitShape<typeof HostSpecSchema>, HostSpec> = {},
): store.HostRecord {
  return create(store.HostRecordSchema, {
    host: {
      name: 'hosts/h1',
      uid: 'u1',
      spec: create(HostSpecSchema, {
        rack: 'racks/r1',
        bmc: { address: '10.0.0.1', credential: 'credentials/c1' },
        bootMacs: ['52:54:00:00:00:01'],
        ...spec,
      }),
      status: { state: HostState.NEW, dirty: true, useEpoch: 1n },
    },
  });
}

export function bench(
  spec: Exclude<MessageInitShape<typeof HostSpecSchema>, HostSpec> = {},
): Bench {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = keys.publicKey.export({ type: 'spki', format: 'der' });
  const self: Bench = {
    record: newHost(spec),
    nowMs: startMs,
    removed: false,
    snapshot: {
      timing: defaultTiming,
      session: {
        journal: create(agent.JournalSchema, { id: 'j1', generation: 1n }),
        lastMessageMs: startMs,
        openedMs: startMs,
        awaitsReport: false,
      },
      sessionElsewhere: false,
      agentRegistered: true,
      agentPublicKey: publicKey,
      credentialVersion: 1n,
      facts: create(store.HostFactsSchema, { hostUid: 'u1' }),
      agentSteps: undefined,
      fleet: undefined,
      identityOwners: new Map(),
      hasReservations: true,
      restoredAccepted: false,
      fencesPending: new Set(),
      tombstones: 0,
      powerMismatch: PowerMismatchPolicy.UNSPECIFIED,
      incarnation: asIncarnation('i1'),
      freeze: undefined,
      restored: undefined,
      quotaViews: [],
    },
    try: (event) => decideHost(self.record, event, { ...self.snapshot, nowMs: self.nowMs }),
    apply: (event) => {
      const outcome = self.try(event);
      if (outcome.kind === 'refused') throw new Error(outcome.refusal.message);
      if (outcome.kind === 'kept') self.record = outcome.record;
      else self.removed = true;
      for (const effect of outcome.effects) {
        if (effect.kind !== 'facts') continue;
        const facts = { ...self.snapshot.facts, ...effect.facts };
        self.snapshot = { ...self.snapshot, facts };
      }
      return outcome.effects;
    },
    request: (request) =>
      self.apply({ kind: 'request', request, by: { actor: userActor('test') } }),
    report: (result, operationId = self.operation().id) => {
      const report = create(agent.ReportSchema, {
        sequence: 1n,
        operationId,
        hostUid: 'u1',
        time: timestampFromMs(self.nowMs),
        result,
      });
      return self.apply({ kind: 'report', report });
    },
    runnerReady: () => {
      const run = self.record.host?.status?.run;
      const bootOperationId = bootOfRunner(run);
      const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
      self.apply({
        kind: 'report',
        report: create(agent.ReportSchema, {
          hostUid: 'u1',
          result: {
            case: 'hostUpdated',
            value: create(agent.HostUpdatedSchema, { observations: { runnerReady } }),
          },
        }),
      });
    },
    evidence: (devices, changes) => signEvidence(keys, self.operation(), devices, changes),
    operation: () => {
      const operation = self.record.operation?.operation;
      if (operation === undefined) throw new Error('no operation in the slot');
      return operation;
    },
  };
  return self;
}

/** The boot under which the present step of a run of u1 runs: the last one that was ordered. */
export function bootOfRunner(run: Run | undefined): string {
  const index =
    run?.steps.findLastIndex(({ name, attempt }, at) => {
      return at <= run.currentStep && isBootStep(name) && attempt > 0;
    }) ?? 0;
  return `u1/${run?.number}/${index}/${run?.steps[index]?.attempt}`;
}

/** Fields of the evidence that differ from the order. */
export type EvidenceChanges = Exclude<
  MessageInitShape<typeof agent.StepEvidenceSchema>,
  agent.StepEvidence
>;

/**
 * An agent's signed evidence of a step on host u1. Devices have the ordered seed unless they name
 * one.
 */
export function signEvidence(
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
  { id, kind }: agent.Operation,
  devices: MessageInitShape<typeof agent.DeviceOutcomeSchema>[],
  changes: EvidenceChanges = {},
): agent.Evidence {
  const ordered = kind.case === 'runStep' ? kind.value : undefined;
  const challengeSeed = ordered?.challengeSeed ?? new Uint8Array();
  const payload = toBinary(
    agent.StepEvidenceSchema,
    create(agent.StepEvidenceSchema, {
      operationId: id,
      hostUid: 'u1',
      runnerSession: 's1',
      bootId: 'b1',
      mode: ordered?.mode ?? agent.StepMode.RUN,
      identityWitnesses: ['uuid'],
      devices: devices.map((device) => ({ challengeSeed, ...device })),
      ...changes,
    }),
  );
  const signature = sign('sha256', payload, { key: keys.privateKey, dsaEncoding: 'der' });
  const publicKey = keys.publicKey.export({ type: 'spki', format: 'der' });
  return create(agent.EvidenceSchema, { payload, signature, publicKey });
}

/** The counts of a device that was read back whole; they do not depend on the seed. */
function readWhole(device: StorageDevice, method: agent.ErasureMethod) {
  const facts = deviceFactsOf(device);
  const seed = new Uint8Array(32);
  const counts = impliedCounts(facts, methodOf(method) ?? 'overwrite', seed, { level: 'full' });
  return {
    placesRead: BigInt(counts.placesRead),
    bytesRead: BigInt(counts.bytesRead),
    bytesExamined: BigInt(counts.bytesExamined),
    challengeBlocksWritten: BigInt(counts.challengeBlocks),
    verification: { level: agent.VerificationLevel.FULL },
  };
}

/** An agent's report of a device that was erased and read back. */
export function erased(
  device: agent.DevicePlan['device'],
  method: agent.ErasureMethod = agent.ErasureMethod.DISCARD,
): MessageInitShape<typeof agent.DeviceOutcomeSchema> {
  return {
    ...(device === undefined ? {} : { device, ...readWhole(device, method) }),
    method,
    verdict: agent.VerdictKind.ERASED,
    startTime: timestampFromMs(startMs),
    endTime: timestampFromMs(startMs + 1000),
  };
}

export const done: agent.Report['result'] = {
  case: 'complete',
  value: create(agent.CompleteSchema, {}),
};

export function verified(): agent.Report['result'] {
  const bmcIdentity = create(BmcIdentitySchema, { guid: uuid, serial: 'SN-1' });
  return {
    case: 'complete',
    value: create(agent.CompleteSchema, { observations: { bmcIdentity } }),
  };
}

export function inspected(
  devices = [virtioDisk],
  system: MessageInitShape<typeof SystemIdentitySchema> = { uuid, serial: 'SN-1' },
): agent.Report['result'] {
  const inventory = create(InventorySchema, {
    system: create(SystemIdentitySchema, system),
    devices,
    runnerSession: 's1',
    bootId: 'b1',
  });
  return { case: 'complete', value: create(agent.CompleteSchema, { observations: { inventory } }) };
}

export function failed(name: FailureName, message: string = name): agent.Report['result'] {
  return {
    case: 'failed',
    value: create(agent.FailedSchema, { type: failureTypeOf(name), message }),
  };
}

/** From new to the erase step of the first clean, which uses the boot of the inspection. */
export function driveToErase(self: Bench, devices = [virtioDisk]): void {
  driveToClean(self, devices);
  self.report(inspected(devices));
}

/** From new to the first clean, which begins with its own inspection. */
export function driveToClean(self: Bench, devices = [virtioDisk]): void {
  self.apply({ kind: 'tick' });
  self.report(verified());
  driveToInspect(self);
  self.report(inspected(devices));
}

/** From the start of a run that boots the runner to its first inspection. */
export function driveToInspect(self: Bench): void {
  self.report(done);
  self.report(done);
  self.runnerReady();
}

/** A host without disks whose policy accepts that, after its first clean. */
export function disklessHost(): Bench {
  const host = bench({ cleaning: { allowDiskless: true } });
  driveToErase(host, []);
  const evidence = host.evidence([]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected([]));
  host.report(done);
  return host;
}

/** The host's present status. */
export function statusOf({ record }: Bench): HostStatus {
  const status = record.host?.status;
  if (status === undefined) throw new Error('a host has a status');
  return status;
}

/** The present step of its run; empty: no run is in progress. */
export function stepAt(host: Bench): string {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** A host whose BMC is proved, clean and off, as if its disk had been erased. */
export function availableHost(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  makeAvailable(host);
  return host;
}

/** As if its disk had been erased in this use, and proved after a power cycle. */
export function makeAvailable(host: Bench): void {
  const status = statusOf(host);
  Object.assign(status, { state: HostState.AVAILABLE, dirty: false, poweredOn: false });
  const certificate = 'erasureCertificates/c1';
  const certified = {
    ...namesOf(deviceFactsOf(virtioDisk)),
    certificate,
    useEpoch: status.useEpoch,
  };
  host.record.certified.push(create(store.CertifiedDeviceSchema, certified));
}
