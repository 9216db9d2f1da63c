/** RAID volumes in a clean: the new disks are inspected, and erased, afterwards. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  applyVolumesStep,
  CleaningPolicySchema,
  FailureType,
  FleetSpecSchema,
  HostGoal,
  HostState,
  PlanRunRequestSchema,
  RaidDrives,
  RerunClass,
  RunOutcome,
  type StorageDevice,
  StorageDeviceSchema,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { planNow } from '../foresee/plan-check.ts';
import { beginPass } from '../pass/pass.ts';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  erased,
  failed,
  inspected,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import { rendered, startOn } from '../testing/templates.ts';

const eraseStep = 'deploy.erase_devices';
const typedArguments = ['controller', 'volumes'].map((name) => ({ name, required: true }));
/** An agent that does not announce a reboot: it happens all the same. */
const agentSteps = [
  create(agent.StepDescriptionSchema, {
    name: applyVolumesStep,
    destructive: true,
    rerunClass: RerunClass.CHECK_FIRST,
    abortable: false,
    typedArguments,
  }),
];
const apply = {
  step: applyVolumesStep,
  arguments: { controller: 'RAID.1', volumes: 'RAID1=a+b' },
};
const erase = { step: eraseStep, arguments: {} };
const volume = create(StorageDeviceSchema, {
  ...virtioDisk,
  device: 'sda',
  serial: 'VOLUME-1',
  raidVolume: true,
});

/** A manageable host whose agent creates volumes. */
function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.snapshot = { ...host.snapshot, agentSteps };
  return host;
}

const runOf = (host: Bench) => {
  const { run } = statusOf(host);
  if (run === undefined) throw new Error('no run');
  return run;
};
const namesOf = (host: Bench) => runOf(host).steps.map(({ name }) => name);
const tried = (host: Bench, request: Parameters<Bench['request']>[0]) =>
  host.try({ kind: 'request', request, by: { actor: userActor('test') } });
const ordered = (host: Bench) => {
  const { kind } = host.operation();
  return kind.case === 'runStep' ? kind.value : undefined;
};

/** Boots into the runner, which identifies the right machine; it may have no disk yet. */
function boot(host: Bench): void {
  driveToInspect(host);
  host.report(inspected([]));
}

function eraseWell(host: Bench, device: StorageDevice): void {
  const value = create(agent.CompleteSchema, { evidence: host.evidence([erased(device)]) });
  host.report({ case: 'complete', value });
}

test('a clean makes volumes first, boots again, looks, and erases what it finds there', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [apply, erase] });
  expect(namesOf(host)).toEqual([
    ...['power.off', 'power.bootRunner', 'runner.await', 'runner.inspect'],
    applyVolumesStep,
    ...['power.off', 'power.bootRunner', 'runner.await', 'runner.inspect'],
    ...[eraseStep, 'runner.inspectAgain', 'power.off'],
  ]);
  boot(host);
  expect(ordered(host)).toMatchObject({
    step: applyVolumesStep,
    destructive: true,
    expectedIdentity: { serial: 'SN-1' },
  });
  host.report(done);
  driveToInspect(host);
  host.report(inspected([volume]));
  expect(ordered(host)?.devices.map(({ device }) => device?.serial)).toEqual(['VOLUME-1']);
  eraseWell(host, volume);
  host.report(inspected([volume]));
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: false });
});

test('an erasure before volumes are made counts for none of the volumes', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [erase, apply, erase] });
  driveToInspect(host);
  host.report(inspected([virtioDisk]));
  eraseWell(host, virtioDisk);
  expect(stepAt(host)).toBe(applyVolumesStep);
  expect(host.record.certified).toEqual([]);
  expect(host.record.devicePlan).toEqual([]);
  host.report(done);
  driveToInspect(host);
  // It has the name of the disk that was erased.
  host.report(inspected([virtioDisk]));
  expect(stepAt(host)).toBe(eraseStep);
  eraseWell(host, virtioDisk);
  host.report(inspected([virtioDisk]));
  host.report(done);
  expect(statusOf(host).dirty).toBe(false);
});

test('volumes that cannot be made leave the host dirty, and nothing is erased', () => {
  const host = manageable();
  statusOf(host).dirty = false;
  host.request({ kind: 'clean', steps: [apply, erase] });
  boot(host);
  host.report(failed('volumesRefused', 'the controller has no drive b'));
  expect(runOf(host).outcome).toBe(RunOutcome.FAILED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('no volume is made where the runner sees another machine than the BMC', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [apply, erase] });
  driveToInspect(host);
  host.report(inspected([], { uuid: new Uint8Array(16).fill(7), serial: 'SN-2' }));
  expect(runOf(host).outcome).toBe(RunOutcome.FAILED);
  expect(runOf(host).error?.type).toBe(FailureType.IDENTITY_MISMATCH);
});

test('no volume is made where a disk is known as attached to another host', () => {
  const host = manageable();
  const disksElsewhere = new Map([[virtioDisk.serial, 'hosts/other']]);
  host.snapshot = { ...host.snapshot, disksElsewhere };
  host.request({ kind: 'clean', steps: [apply, erase] });
  driveToInspect(host);
  host.report(inspected([virtioDisk]));
  expect(runOf(host).outcome).toBe(RunOutcome.FAILED);
  expect(runOf(host).error?.message).toContain('hosts/other');
});

test('volumes of before are erased first where the policy accepts drives that nobody sees', () => {
  const look = (...steps: (typeof apply | typeof erase)[]) => {
    const host = manageable();
    const cleaning = create(CleaningPolicySchema, { raidDrives: RaidDrives.ACCEPT });
    if (host.record.host?.spec === undefined) throw new Error('no spec');
    host.record.host.spec.cleaning = cleaning;
    host.request({ kind: 'clean', steps });
    driveToInspect(host);
    host.report(inspected([volume]));
    return host;
  };
  const weak = { ...erase, step: 'deploy.erase_devices_metadata' };
  for (const steps of [
    [apply, erase],
    [weak, apply, erase],
  ]) {
    expect(runOf(look(...steps)).error).toMatchObject({
      type: FailureType.DEVICE_REFUSED,
      message: expect.stringContaining('put deploy.erase_devices before raid.apply as well'),
    });
  }
  expect(stepAt(look(erase, apply, erase))).toBe(eraseStep);
});

test('a program of the site that runs before volumes are made needs no disk either', () => {
  const host = manageable();
  const image = `registry.example.org/notes@sha256:${'a'.repeat(64)}`;
  const templates = { imageRepositories: ['registry.example.org/*'] };
  const fleet = create(FleetSpecSchema, { templates, ownCleanSteps: [{ name: 'note', image }] });
  host.snapshot = { ...host.snapshot, fleet };
  host.request({ kind: 'clean', steps: [{ step: 'own.note', arguments: {} }, apply, erase] });
  boot(host);
  host.report(done);
  driveToInspect(host);
  host.report(inspected([]));
  expect(stepAt(host)).toBe(applyVolumesStep);
});

test('an order for volumes that was cut short is never given again by itself', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [apply, erase] });
  boot(host);
  host.report(failed('interrupted', 'the agent was started anew'));
  expect(ordered(host)?.mode).toBe(agent.StepMode.CHECK);
  host.report(failed('stillPending', 'the BMC does not tell its volumes any more'));
  expect(runOf(host).outcome).toBe(RunOutcome.FAILED);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('volumes have more than an hour, and what was cut short is only looked at', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [apply, erase] });
  boot(host);
  const { id, deadline } = host.operation();
  const minutes = (timestampMs(deadline ?? timestampFromMs(0)) - host.nowMs) / 60_000;
  expect(minutes).toBe(75);
  host.report(failed('interrupted', 'the agent was started anew'));
  expect(host.operation().id).not.toBe(id);
  expect(ordered(host)?.mode).toBe(agent.StepMode.CHECK);
});

test('a list that does not erase behind its volumes is refused before it starts', () => {
  const host = manageable();
  for (const steps of [[apply], [erase, apply]]) {
    const outcome = tried(host, { kind: 'clean', steps });
    const fields = outcome.kind === 'refused' ? outcome.refusal.fieldViolations : [];
    expect(fields).toEqual([
      {
        field: `steps[${steps.length - 1}].step`,
        description: 'raid.apply makes other disks; put it before a step that erases them',
      },
    ]);
  }
});

test('a service and a template make no volumes', () => {
  const service = tried(manageable(), { kind: 'service', steps: [apply] });
  expect(service.kind === 'refused' && service.refusal.message).toContain('ask for a clean');
  const host = manageable();
  expect(() => startOn(host, [rendered('volumes', applyVolumesStep)])).toThrow(/for cleans only/);
});

test('a plan says that other disks than those that it lists will be erased', () => {
  const host = manageable();
  host.request({ kind: 'inspect' });
  driveToInspect(host);
  host.report(inspected([virtioDisk]));
  host.report(done);
  const request = { kind: 'clean', steps: [apply, erase] } as const;
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const asked = create(PlanRunRequestSchema, { run: { case: 'clean', value: {} } });
  const draft = planNow(pass, request, asked);
  if ('code' in draft) throw new Error(draft.message);
  expect(draft.plan.notes).toContainEqual(expect.stringContaining('raid.apply makes other disks'));
  host.request({ ...request, plan: { record: create(store.PlanRecordSchema, draft), reason: '' } });
  expect(host.record.plannedErasure).toBeUndefined();
  boot(host);
  host.report(done);
  driveToInspect(host);
  host.report(inspected([volume]));
  expect(stepAt(host)).toBe(eraseStep);
});
