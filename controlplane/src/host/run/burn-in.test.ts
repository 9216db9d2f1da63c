/** Burn-ins in cleans: their positions, the disks that they may overwrite, and what is stored. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  BurnInKind,
  type BurnInSchema,
  FailureType,
  HostGoal,
  HostState,
  RunOutcome,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import {
  type Bench,
  bench,
  done,
  driveToInspect,
  erased,
  inspected,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

type Listed = string | readonly [string, Record<string, string>];
type BurnInInit = Exclude<MessageInitShape<typeof BurnInSchema>, { readonly $typeName: string }>;

const asList = (steps: readonly Listed[]) =>
  steps.map((step) =>
    typeof step === 'string' ? { step, arguments: {} } : { step: step[0], arguments: step[1] },
  );

function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

/** At the first step of a list, with one disk. */
function started(...steps: readonly Listed[]): Bench {
  const host = manageable();
  host.request({ kind: 'clean', steps: asList(steps) });
  driveToInspect(host);
  host.report(inspected());
  return host;
}

function refused(...steps: readonly Listed[]) {
  const request = { kind: 'clean', steps: asList(steps) } as const;
  const outcome = manageable().try({ kind: 'request', request, by: { actor: userActor('test') } });
  return outcome.kind === 'refused' ? (outcome.refusal.fieldViolations ?? []) : [];
}

function ordered(host: Bench): agent.RunStep {
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error(`a step was to be ordered, not ${kind.case}`);
  return kind.value;
}

/** Ends the present step; its facts are in the context of the next report. */
function end(host: Bench, burnIn: BurnInInit, failure?: FailureType): void {
  const observations = { burnIn };
  const effects = host.report(
    failure === undefined
      ? { case: 'complete', value: create(agent.CompleteSchema, { observations }) }
      : {
          case: 'failed',
          value: create(agent.FailedSchema, { type: failure, message: 'bad', observations }),
        },
  );
  for (const effect of effects) {
    if (effect.kind !== 'facts') continue;
    const facts = create(store.HostFactsSchema, { ...host.snapshot.facts, ...effect.facts });
    host.snapshot = { ...host.snapshot, facts };
  }
}

test('a burn-in of disks gets exactly those of the plan, and they are erased behind it', () => {
  const host = started(['burnin.disk', { share: '50' }], 'deploy.erase_devices');
  const order = ordered(host);
  expect(order).toMatchObject({
    ...{ step: 'burnin.disk', destructive: true, mode: agent.StepMode.RUN },
    arguments: { share: '50', duration: '1h', rate_min: '0', celsius_max: '0' },
    devices: [{ device: { serial: virtioDisk.serial }, method: agent.ErasureMethod.OVERWRITE }],
  });
  end(host, { passed: true });
  expect(stepAt(host)).toBe('deploy.erase_devices');
  expect(ordered(host).devices[0]?.method).toBe(agent.ErasureMethod.DISCARD);
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  host.report(done);
  expect(statusOf(host)).toMatchObject({ dirty: false, run: { outcome: RunOutcome.SUCCEEDED } });
});

test('evidence of a burn-in certifies no disk', () => {
  const host = started('burnin.disk', 'deploy.erase_devices');
  const evidence = host.evidence([erased(virtioDisk)]);
  const value = create(agent.CompleteSchema, { evidence });
  const effects = host.report({ case: 'complete', value });
  expect(effects.map(({ kind }) => kind)).not.toContain('certify');
  expect(host.record.certified).toEqual([]);
});

test.each<[string, Listed[]]>([
  ['alone', ['burnin.disk']],
  ['behind the erasure', ['deploy.erase_devices', 'burnin.disk']],
  ['between two', ['deploy.erase_devices', 'burnin.disk', 'deploy.erase_devices_metadata']],
])('a burn-in of disks is refused %s', (_, steps) => {
  const at = steps.indexOf('burnin.disk');
  const description = 'burnin.disk writes over disks; put it before a step that erases them';
  expect(refused(...steps)).toEqual([{ field: `steps[${at}].step`, description }]);
});

test('no other run writes over disks by a burn-in, and others are free', () => {
  const host = manageable();
  const by = { actor: userActor('test') };
  const service = (step: string) =>
    host.try({ kind: 'request', request: { kind: 'service', steps: asList([step]) }, by });
  expect(service('burnin.disk')).toMatchObject({ kind: 'refused' });
  expect(service('burnin.cpu').kind).not.toBe('refused');
  const unit = ['burnin.cpu', { duration: '10 minutes' }] as const;
  expect(refused(unit)[0]?.field).toBe('steps[0].arguments.duration');
});

test('a burn-in by the policy runs right before the erasure, whatever its priority', () => {
  const overrides = { 'burnin.disk': 1, 'burnin.cpu': 10 };
  const host = bench({ cleaning: { priorityOverrides: overrides } });
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  host.report(inspected());
  const names = statusOf(host).run?.steps.map(({ name }) => name) ?? [];
  const own = names.filter((name) => name.startsWith('burnin.') || name.startsWith('deploy.'));
  expect(own).toEqual(['burnin.cpu', 'burnin.disk', 'deploy.erase_devices']);
});

test('a step has the time that it is asked to work, and so has its run', () => {
  const hours = (duration: string) => {
    const host = started(['burnin.memory', { duration }]);
    const deadlines = [host.operation().deadline, statusOf(host).run?.deadline];
    return deadlines.map((each) => {
      return Math.round((timestampMs(each ?? timestampFromMs(0)) - host.nowMs) / 3_600_000);
    });
  };
  const [step = 0, run = 0] = hours('1s');
  expect(hours('50h')).toEqual([step + 100, run + 100]);
});

test('disks that wait for others have time of their own, and so has the run', () => {
  const hours = (disks: number) => {
    const host = manageable();
    const step = ['burnin.disk', { duration: '10h' }] as const;
    host.request({ kind: 'clean', steps: asList([step, 'deploy.erase_devices']) });
    driveToInspect(host);
    const devices = Array.from({ length: disks }, (_, n) => ({
      ...virtioDisk,
      serial: `DISK-${1_000 + n}`,
    }));
    host.report(inspected(devices));
    const deadlines = [host.operation().deadline, statusOf(host).run?.deadline];
    return deadlines.map((each = timestampFromMs(0)) => {
      return Math.floor((timestampMs(each) - host.nowMs) / 3_600_000);
    });
  };
  const [few, many] = [hours(4), hours(60)];
  expect(many[0]).toBe((few[0] ?? 0) + 14 * 20);
  expect(many[1]).toBeGreaterThanOrEqual((few[1] ?? 0) + 14 * 20);
});

test('the last burn-in of each kind is kept, within bounds, by the step that was ordered', () => {
  const host = started('burnin.memory', 'burnin.cpu', 'burnin.cpu');
  const long = 'x'.repeat(10_000);
  const part = () => ({ name: long, finding: long, errors: 3n });
  const parts = Array.from({ length: 100 }, part);
  // It reports another kind than was ordered, and an impossible temperature.
  end(host, { kind: BurnInKind.DISK, passed: true, parts, problem: long, celsiusMax: 2 ** 30 });
  const [kept] = host.snapshot.facts.burnIns;
  expect(kept).toMatchObject({ kind: BurnInKind.MEMORY, passed: true });
  expect(kept?.celsiusMax).toBeUndefined();
  expect(kept?.parts).toHaveLength(32);
  expect(kept?.parts[0]?.errors).toBe(3n);
  expect((kept?.problem.length ?? 0) + (kept?.parts[0]?.finding.length ?? 0)).toBeLessThan(850);
  end(host, { passed: false, celsiusMax: 20 });
  end(host, { passed: true, celsiusMax: 61 });
  const all = host.snapshot.facts.burnIns.map(({ kind, celsiusMax }) => [kind, celsiusMax]);
  expect(all).toEqual([
    [BurnInKind.CPU, 61],
    [BurnInKind.MEMORY, undefined],
  ]);
});

test('a burn-in that fails ends the clean, is told, and has not passed whatever it says', () => {
  const host = started('burnin.cpu', 'deploy.erase_devices');
  end(host, { passed: true, problem: 'wrong' }, FailureType.HARDWARE_DEFECT);
  expect(host.snapshot.facts.burnIns).toMatchObject([{ passed: false, problem: 'wrong' }]);
  expect(statusOf(host)).toMatchObject({
    ...{ state: HostState.MANAGEABLE, dirty: true },
    lastError: { failure: { type: FailureType.HARDWARE_DEFECT } },
  });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.unblock.join('\n')).toContain('rackwright host get h1');
});
