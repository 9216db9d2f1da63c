/** What must hold before a host counts as erased: the right machine, every disk, every proof. */
import { clone, create } from '@bufbuild/protobuf';
import {
  agent,
  BmcIdentitySchema,
  FailureType,
  HostState,
  isGivenUp,
  RunKind,
  StorageDeviceSchema,
  StorageSignKind,
  StorageSignSchema,
  type store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  inspected,
  nvmeDisk,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const stateOf = (record: store.HostRecord) => record.host?.status?.state;

test('guard 0: a machine that is not the one whose BMC was switched on is never written to', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  host.report(inspected());
  host.report(inspected([virtioDisk], { uuid: new Uint8Array(16).fill(7), serial: 'SN-2' }));
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.IDENTITY_MISMATCH);
  expect(host.record.operation).toBeUndefined();
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(isGivenUp(host.record.host?.status?.backoff)).toBe(true);
});

test('a BMC that another host was verified with is not accepted, and its owner is named', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.snapshot = {
    ...host.snapshot,
    identityOwners: new Map([['0102030405060708090a0b0c0d0e0f10', 'hosts/h2']]),
  };
  host.report(verified());
  expect(host.record.host?.status?.lastError?.failure?.message).toContain('hosts/h2');
  expect(stateOf(host.record)).toBe(HostState.NEW);
});

test('H6: a disk that appears after the erase keeps the host from being available', () => {
  const host = bench();
  driveToErase(host);
  host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  host.report(inspected([virtioDisk, nvmeDisk]));
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.NOT_CERTIFIED);
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(host.record.host?.status?.dirty).toBe(true);
});

/** A host whose one disk has been erased, before its second inspection. */
function erasedHost() {
  const host = bench();
  driveToErase(host);
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  return host;
}

/** The inventory of a runner that has no driver for one storage controller. */
function inspectedUndriven() {
  const look = inspected();
  if (look.case === 'complete' && look.value.observations?.inventory !== undefined) {
    look.value.observations.inventory.storageSigns = [
      create(StorageSignSchema, {
        kind: StorageSignKind.CONTROLLER_WITHOUT_DRIVER,
        name: '0000:03:00.0',
      }),
    ];
  }
  return look;
}

test('H6: a storage controller that has no driver after the erase keeps the host dirty', () => {
  const host = erasedHost();
  host.report(inspectedUndriven());
  const failure = host.record.host?.status?.lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_REFUSED);
  expect(failure?.message).toContain('0000:03:00.0');
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(host.record.host?.status?.dirty).toBe(true);
});

test('H6: a disk of the plan that is gone after its erase keeps the host dirty', () => {
  const host = erasedHost();
  host.report(inspected([]));
  const failure = host.record.host?.status?.lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_CHANGED);
  expect(failure?.message).toContain('is not there');
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
  expect(host.record.host?.status?.dirty).toBe(true);
});

test.each([
  ['read-only', { readOnly: true }],
  ['without a serial', { serial: '' }],
] as const)('H6: a disk that is %s at the last look keeps the host dirty', (_, change) => {
  const host = erasedHost();
  const look = clone(StorageDeviceSchema, virtioDisk);
  host.report(inspected([Object.assign(look, change)]));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).lastError?.failure?.type).toBe(
    'serial' in change ? FailureType.DEVICE_CHANGED : FailureType.DEVICE_REFUSED,
  );
});

const disks = [virtioDisk, nvmeDisk, { ...virtioDisk, device: 'vdb', serial: 'DISK-2' }];

/** A host of three disks, of which these are reported as erased. */
function erasedOfThree(reported: readonly (typeof virtioDisk)[]) {
  const host = bench();
  driveToErase(host, disks);
  const evidence = host.evidence(
    host.record.devicePlan.flatMap(({ device, method }) =>
      reported.some(({ serial }) => serial === device?.serial) ? [erased(device, method)] : [],
    ),
  );
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  return host;
}

test('H6: a host of several disks is available with a certificate of each', () => {
  const host = erasedOfThree(disks);
  host.report(inspected(disks));
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  const keys = host.record.certified.map(({ deviceKey }) => deviceKey);
  expect(new Set(keys).size).toBe(3);
  expect(statusOf(host).lastCleaned?.certificates).toHaveLength(3);
});

test.each([0, 1, 2])(
  'H6: certificate %i that is lost after the last look keeps the host dirty',
  (lost) => {
    const host = erasedOfThree(disks);
    host.report(inspected(disks));
    const [certificate] = host.record.certified.splice(lost, 1);
    host.report(done);
    expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
    expect(statusOf(host).lastError?.failure?.message).toContain(certificate?.deviceKey);
  },
);

test.each([0, 1, 2])('H6: evidence of all disks but number %i certifies none', (missing) => {
  const host = erasedOfThree(disks.filter((_, at) => at !== missing));
  expect(host.record.certified).toEqual([]);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).lastError?.failure?.message).toContain(disks[missing]?.serial);
});

test('H6: an available host whose storage lost its driver is not available', () => {
  const host = erasedHost();
  host.report(inspected());
  host.report(done);
  expect(stateOf(host.record)).toBe(HostState.AVAILABLE);
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspectedUndriven());
  host.report(done);
  expect(stateOf(host.record)).not.toBe(HostState.AVAILABLE);
  expect(host.record.host?.status?.dirty).toBe(true);
});

test('H6: evidence signed by another key, or with a changed byte, certifies nothing', () => {
  const host = bench();
  driveToErase(host);
  const evidence = host.evidence([erased(virtioDisk)]);
  evidence.payload[evidence.payload.length - 1] = (evidence.payload.at(-1) ?? 0) ^ 1;
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.INVALID_RESULT);
  expect(stateOf(host.record)).toBe(HostState.MANAGEABLE);
});

test('a clean that erases less than the policy asks is refused before anything is written', () => {
  const host = bench({ cleaning: { priorityOverrides: { 'deploy.erase_devices': 0 } } });
  driveToErase(host);
  const { run, lastError } = host.record.host?.status ?? {};
  expect(lastError?.failure?.type).toBe(FailureType.NOT_CERTIFIED);
  expect(run?.kind).toBe(RunKind.CLEAN);
  expect(run?.steps.filter(({ attempt }) => attempt > 0).map(({ name }) => name)).toEqual([
    'runner.inspect',
  ]);
  const request = { kind: 'clean', steps: [] } as const;
  const outcome = host.try({ kind: 'request', request, by: { actor: userActor('ann') } });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain(
    'its own cleaning policy sets the priority of deploy.erase_devices to 0',
  );
});

test('another host that netboots while this one is waited for accuses nobody', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(done);
  host.report(done);
  const observations = {
    unexpectedNetboot: {
      hostUid: 'u2',
      hostName: 'hosts/h2',
      mac: '52:54:00:00:00:02',
      insteadOfOperationId: 'u1/2/1/1',
    },
  };
  host.apply({
    kind: 'report',
    report: create(agent.ReportSchema, {
      hostUid: 'u1',
      result: { case: 'hostUpdated', value: create(agent.HostUpdatedSchema, { observations }) },
    }),
  });
  const suspicion = /h2 \(52:54:00:00:00:02\) netbooted meanwhile.* may be crossed/;
  expect(host.record.host?.status?.lastError).toBeUndefined();
  expect(host.record.host?.status?.run?.waiting?.message).toMatch(suspicion);
  host.nowMs += 3_600_000;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('the agent is connected');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
  const { failure } = host.record.host?.status?.lastError ?? {};
  expect(failure?.type).not.toBe(FailureType.IDENTITY_MISMATCH);
  expect(failure?.message).toMatch(suspicion);
});

test('a disk that cannot be erased fails the clean and is named', () => {
  const host = bench();
  driveToErase(host, [{ ...virtioDisk, readOnly: true }]);
  const failure = host.record.host?.status?.lastError?.failure;
  expect(failure?.type).toBe(FailureType.DEVICE_REFUSED);
  expect(failure?.message).toContain('DISK-1');
});

test('a host without a disk is no success unless the policy says so', () => {
  const host = bench();
  driveToErase(host, []);
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.NO_DEVICES);
});

test('another machine behind the name of an available host is not available', () => {
  const host = bench();
  driveToErase(host);
  host.report({
    case: 'complete',
    value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
  });
  host.report(inspected());
  host.report(done);
  host.request({ kind: 'verify' });
  const bmcIdentity = create(BmcIdentitySchema, { guid: new Uint8Array(16).fill(9) });
  const value = create(agent.CompleteSchema, { observations: { bmcIdentity } });
  host.report({ case: 'complete', value });
  expect(stateOf(host.record)).not.toBe(HostState.AVAILABLE);
  expect(host.record.host?.status?.useEpoch).toBe(2n);
  expect(host.record.host?.status?.dirty).toBe(true);
});
