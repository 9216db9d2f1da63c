/** What a host reports after a reimage that did not happen, and when that ends. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  asRunNumber,
  type FailureName,
  FailureType,
  FaultSchema,
  FaultSeverity,
  failureTypeOf,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
  StorageDeviceSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { suspectUse } from '../erasure/use.ts';
import { explainHost } from '../explain/explain.ts';
import { beginPass } from '../pass/pass.ts';
import type { OwnSlot, QuotaView } from '../pass/quota.ts';
import type { HostEffect } from '../pass/types.ts';
import { nextWakeMs } from '../shell/wake.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  statusOf,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const image = (digit: string) => `registry.example/os@sha256:${digit.repeat(64)}`;
const first = image('1');
const second = image('2');
const unavailable = untouched('imageNotFound');

function untouched(type: FailureName): agent.Report['result'] {
  const value = create(agent.FailedSchema, {
    type: failureTypeOf(type),
    message: type,
    disksUntouched: true,
  });
  return { case: 'failed', value };
}

function inService(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  Object.assign(statusOf(host), { state: HostState.PROVISIONED, image: first, poweredOn: true });
  host.request({ kind: 'claim', reason: 'mine' });
  return host;
}

/** Until nothing runs. */
function finish(host: Bench): void {
  for (let count = 0; count < 20 && statusOf(host).run?.phase !== RunPhase.ENDED; count++) {
    host.report(done);
  }
  expect(statusOf(host).run?.phase).toBe(RunPhase.ENDED);
}

/** A reimage whose write step ends like this, and all automatic follow-ups. */
function reimage(host: Bench, to: string, end: agent.Report['result']): void {
  host.request({ kind: 'reimage', image: to });
  driveTo(host, 'deploy.write_image');
  host.report(end);
  finish(host);
}

function driveTo(host: Bench, name: string): HostEffect[] {
  const effects: HostEffect[] = [];
  const stepAt = () => {
    const { run } = statusOf(host);
    return run?.steps[run.currentStep]?.name;
  };
  for (let count = 0; count < 20 && stepAt() !== name; count++) {
    if (stepAt() === 'runner.await') host.runnerReady();
    else effects.push(...host.report(stepAt() === 'runner.inspect' ? inspected() : done));
  }
  expect(stepAt()).toBe(name);
  return effects;
}

function faults(host: Bench) {
  return statusOf(host).faults.map(({ type, severity }) => [type, severity]);
}

test('a host that was not written is warned of, back in service on what it ran', () => {
  const host = inService();
  reimage(host, second, unavailable);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.POWER, requestedBy: 'system' });
  expect(statusOf(host).poweredOn).toBe(true);
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.WARNING]]);
  expect(statusOf(host).faults[0]?.message).toContain(`on the disk: ${first}, untouched`);
  expect(statusOf(host).faults[0]?.clearedBy).toBe('the next run that succeeds, whatever it does');
});

test('the warning of a host that was not written goes with the next run that succeeds', () => {
  for (const kind of ['verify', 'powerReset'] as const) {
    const host = inService();
    reimage(host, second, unavailable);
    const reset = { kind: 'powerReset', bootOldDiskReason: '' } as const;
    host.request(kind === 'verify' ? { kind } : reset);
    if (kind === 'verify') host.report(verified());
    finish(host);
    expect(faults(host), kind).toEqual([]);
  }
});

test('a host whose disk is lost stays ill, whatever a later reimage has not touched', () => {
  const host = inService();
  reimage(host, second, failed('writeError'));
  const ill = [['reimageFailed', FaultSeverity.ERROR]];
  expect(faults(host)).toEqual(ill);
  reimage(host, second, unavailable);
  expect(faults(host)).toEqual(ill);
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  finish(host);
  expect(faults(host)).toEqual(ill);
});

test('a host that was warned of and then lost is ill until an image stands there whole', () => {
  const host = inService();
  reimage(host, second, unavailable);
  reimage(host, second, failed('writeError'));
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.ERROR]]);
  expect(statusOf(host).faults[0]?.clearedBy).toBe('a reimage or release run that succeeds');
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  finish(host);
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.ERROR]]);
  reimage(host, second, done);
  expect(faults(host)).toEqual([]);
});

test('other faults of the host are cleared once a reimage has succeeded', () => {
  const host = inService();
  const message = 'it has failed';
  for (const type of ['powerFailed', 'rescueFailed', 'serviceFailed', 'workflowFailed']) {
    statusOf(host).faults.push(
      create(FaultSchema, { type, message, severity: FaultSeverity.ERROR }),
    );
  }
  statusOf(host).faults.push(create(FaultSchema, { type: 'bmcTrouble', message }));
  reimage(host, second, done);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: second });
  expect(statusOf(host).faults.map(({ type }) => type)).toEqual(['bmcTrouble']);
});

test.each(['before it', 'while its image is fetched'])(
  'a reimage under a freeze set %s waits for the thaw with its host in service',
  (when) => {
    const host = inService();
    const freeze = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: undefined };
    if (when === 'before it') host.snapshot = { ...host.snapshot, freeze };
    host.request({ kind: 'reimage', image: second });
    driveTo(host, 'deploy.fetch_image');
    host.snapshot = { ...host.snapshot, freeze };
    host.report(done);
    expect(statusOf(host)).toMatchObject({ poweredOn: true, image: first });
    expect(statusOf(host).run).toMatchObject({ currentStep: 1, waiting: { reason: 'freeze' } });
    expect(host.record.operation?.sentTo).toBeUndefined();
    host.snapshot = { ...host.snapshot, freeze: undefined };
    host.apply({ kind: 'tick' });
    expect(host.operation().kind.case).toBe('setPower');
  },
);

const wipes = (...own: OwnSlot[]): QuotaView[] => {
  const quota = { kind: 'inStretch', hosts: 1, stretchMs: 3_600_000 } as const;
  return [{ name: 'rackWipes', quota, own, nextSlotMs: undefined }];
};

const changes = (effects: readonly HostEffect[]) =>
  effects.flatMap((effect) => (effect.kind === 'quota' ? [effect.change.kind] : []));

test('a reimage waits in service for a slot of the wipe budget, and keeps it to its write', () => {
  const host = inService();
  host.snapshot = { ...host.snapshot, quotaViews: wipes() };
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.fetch_image');
  expect(changes(host.report(done))).toEqual(['take']);
  expect(statusOf(host)).toMatchObject({ poweredOn: true, image: first });
  expect(statusOf(host).run).toMatchObject({ currentStep: 1, waiting: { reason: 'wipeBudget' } });
  expect(host.record.operation?.sentTo).toBeUndefined();
  const run = statusOf(host).run?.number ?? 0n;
  host.snapshot = { ...host.snapshot, quotaViews: wipes({ run: asRunNumber(run), kind: 'open' }) };
  expect(changes(host.apply({ kind: 'tick' }))).toEqual([]);
  expect(host.operation().kind.case).toBe('setPower');
  expect(changes(driveTo(host, 'deploy.write_image'))).toEqual([]);
  expect(host.record.operation?.sentTo, 'it is written without another wait').toBeDefined();
  const value = create(agent.ContinuingSchema, { step: 'deploy.write_image', begun: true });
  expect(changes(host.report({ case: 'continuing', value }))).toEqual(['leave']);
});

test.each(['power.off', 'runner.await', 'deploy.write_image'])(
  'a reimage of which the agent goes at %s leaves its place to others, unless it may write',
  (name) => {
    const host = inService();
    host.request({ kind: 'reimage', image: second });
    const run = statusOf(host).run?.number ?? 0n;
    host.snapshot = {
      ...host.snapshot,
      quotaViews: wipes({ run: asRunNumber(run), kind: 'open' }),
    };
    driveTo(host, name);
    const { session } = host.snapshot;
    host.snapshot = { ...host.snapshot, session: undefined };
    expect(changes(host.apply({ kind: 'tick' })), 'it may be back at once').toEqual([]);
    const goneMs = host.nowMs + host.snapshot.timing.contactDeadlineMs;
    expect(nextWakeMs(host.record, host.nowMs)).toBeLessThanOrEqual(goneMs);
    host.nowMs = goneMs;
    const mayWrite = name === 'deploy.write_image';
    expect(changes(host.apply({ kind: 'tick' }))).toEqual(mayWrite ? [] : ['leave']);
    if (session === undefined || mayWrite) return;
    const back = { ...session, lastMessageMs: host.nowMs };
    host.snapshot = {
      ...host.snapshot,
      session: back,
      quotaViews: wipes({ run: asRunNumber(run), kind: 'closed' }),
    };
    expect(changes(driveTo(host, 'deploy.write_image'))).toContain('take');
    expect(host.record.operation?.sentTo, 'it waits for a slot anew').toBeUndefined();
  },
);

test('a host that fetches an image takes no slot of the runner, and then waits for one', () => {
  const host = ready();
  const quota = { kind: 'atOnce', hosts: 1 } as const;
  const full = { name: 'runner', quota, own: [], nextSlotMs: undefined } as const;
  host.snapshot = { ...host.snapshot, quotaViews: [full] };
  const asked = host.request({ kind: 'provision', image: first });
  expect(asked.filter(({ kind }) => kind === 'quota')).toEqual([]);
  expect(host.operation().kind.case).toBe('runStep');
  const next = host.report(done);
  expect(next).toContainEqual(
    expect.objectContaining({ kind: 'quota', change: expect.objectContaining({ kind: 'take' }) }),
  );
  expect(statusOf(host).run).toMatchObject({ currentStep: 1, waiting: { reason: 'capacity' } });
});

/** Cleaned by its goal, each disk with its certificate. */
function ready(): Bench {
  const host = bench();
  driveToErase(host);
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  return host;
}

function erasedWell(host: Bench): agent.Report['result'] {
  const evidence = host.evidence([erased(virtioDisk)]);
  return { case: 'complete', value: create(agent.CompleteSchema, { evidence }) };
}

/** Each end of a provision, by the step at which it ends. */
const beforeTheWrite = ['deploy.fetch_image', 'power.off', 'runner.inspect', 'deploy.write_image'];

test.each(beforeTheWrite)(
  'a host not provisioned at %s is as ready as before, and says why',
  (at) => {
    const host = ready();
    const { useEpoch } = statusOf(host);
    host.request({ kind: 'provision', image: first });
    driveTo(host, at);
    host.report(untouched('imageNotFound'));
    finish(host);
    expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false, useEpoch });
    expect(statusOf(host).poweredOn).toBe(false);
    expect(statusOf(host).backoff).toBeUndefined();
    expect(faults(host)).toEqual([['provisionFailed', FaultSeverity.WARNING]]);
    expect(statusOf(host).faults[0]).toMatchObject({
      message: 'imageNotFound; nothing was written',
      clearedBy: 'a provision or adopt run that succeeds',
    });
    expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.IMAGE_NOT_FOUND);
    const { headline } = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
    expect(headline).toMatch(/^available: provision \d+ failed, and nothing tries it again/);
    host.request({ kind: 'provision', image: first });
    expect(statusOf(host).run?.phase).toBe(RunPhase.RUNNING);
  },
);

test('a host that was written in part is erased, and still says what had failed', () => {
  const host = ready();
  const { useEpoch } = statusOf(host);
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.write_image');
  host.report(failed('writeError'));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).useEpoch).toBeGreaterThan(useEpoch);
  expect(faults(host)).toEqual([['provisionFailed', FaultSeverity.ERROR]]);
  host.nowMs += 3_600_000;
  host.apply({ kind: 'tick' });
  driveTo(host, 'deploy.erase_devices');
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  expect(faults(host)).toEqual([['provisionFailed', FaultSeverity.WARNING]]);
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.WRITE_ERROR);
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.await_image');
  host.report(done);
  expect(faults(host)).toEqual([]);
  expect(statusOf(host).lastError).toBeUndefined();
});

test('a host whose disks nothing speaks for any more is erased, though nothing was written', () => {
  const another = create(StorageDeviceSchema, { ...virtioDisk, serial: 'DISK-2', device: 'vdb' });
  const reasons: Readonly<Record<string, (host: Bench) => void>> = {
    'another machine': (host) => host.report(inspected([virtioDisk], { serial: 'SN-9' })),
    'another disk': (host) => host.report(inspected([virtioDisk, another])),
    'a use that nobody ordered': (host) => {
      const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
      suspectUse(pass, 'seen on');
      host.record = pass.record;
      host.report(untouched('imageNotFound'));
    },
  };
  for (const [reason, happens] of Object.entries(reasons)) {
    const host = ready();
    host.request({ kind: 'provision', image: first });
    driveTo(host, 'runner.inspect');
    happens(host);
    expect(statusOf(host), reason).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  }
});

test('a provision that met another machine asks for one verify, and keeps its fault', () => {
  const host = ready();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'power.off');
  host.report(failed('identityMismatch', 'another BMC answers at 10.0.0.1'));
  finish(host);
  host.request({ kind: 'retry' });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.VERIFY, phase: RunPhase.RUNNING });
  host.report(verified());
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN, phase: RunPhase.RUNNING });
  expect(statusOf(host).lastError).toBeUndefined();
  expect(faults(host)).toEqual([['provisionFailed', FaultSeverity.ERROR]]);
});
