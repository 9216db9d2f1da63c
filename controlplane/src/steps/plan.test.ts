import { create } from '@bufbuild/protobuf';
import {
  agent,
  CleaningPolicySchema,
  ErasureLevel,
  eraseMetadataStep,
  eraseStep,
  FleetSpecSchema,
  RerunClass,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { ownSteps } from './own-steps.ts';
import { builtInSteps, cleanPlan, type KnownStep } from './plan.ts';

test.each([
  [undefined, true],
  [true, true],
  [false, false],
])('a step that says destructive: %s counts as destructive: %s', (said, taken) => {
  const step = create(agent.StepDescriptionSchema, {
    name: 'vendor.reset',
    priority: 5,
    rerunClass: RerunClass.SAFE,
    ...(said === undefined ? {} : { destructive: said }),
  });
  const [planned] = cleanPlan({ known: [{ description: step, source: 'runner' }] }).enabled;
  expect(planned).toMatchObject({ name: 'vendor.reset', destructive: taken });
});

function known(name: string, priority: number, source: 'agent' | 'runner' = 'runner'): KnownStep {
  return { description: create(agent.StepDescriptionSchema, { name, priority }), source };
}

const tuned = [known('bios.tune', 7)];
const fleet = create(FleetSpecSchema, {
  priorityOverrides: { 'bios.tune': 30 },
  pools: [{ pool: 'gpu', priorityOverrides: { 'bios.tune': 20 } }],
});
const policy = create(CleaningPolicySchema, { priorityOverrides: { 'bios.tune': 10 } });

test.each([
  ['host', { policy, pool: 'gpu', fleet }, 10],
  ['pool', { pool: 'gpu', fleet }, 20],
  ['fleet', { pool: 'other', fleet }, 30],
  ['fleet', { fleet }, 30],
  ['step', {}, 7],
] as const)('the priority of the %s comes first', (from, layers, priority) => {
  const [step] = cleanPlan({ known: tuned, ...layers }).enabled;
  expect(step).toMatchObject({ priority, priorityFrom: from });
});

test('an override goes before the level, and the level before the step', () => {
  const level = ErasureLevel.METADATA_ONLY;
  const all = builtInSteps.map((description) => ({ description, source: 'runner' as const }));
  const byLevel = cleanPlan({ known: all, policy: create(CleaningPolicySchema, { level }) });
  expect(byLevel.enabled.map(({ name, priorityFrom }) => [name, priorityFrom])).toEqual([
    [eraseMetadataStep, 'level'],
  ]);
  const erasure = byLevel.disabled.find(({ name }) => name === eraseStep);
  expect(erasure?.priorityFrom).toBe('level');
  const both = create(CleaningPolicySchema, { level, priorityOverrides: { [eraseStep]: 5 } });
  const overridden = cleanPlan({ known: all, policy: both }).enabled;
  expect(overridden.map(({ name }) => name)).toEqual([eraseMetadataStep, eraseStep]);
});

test.each([
  ['host', { policy: { priorityOverrides: { 'bios.tune': 0 } } }, 'priority_overrides sets'],
  ['pool', { pools: [{ pool: 'gpu', priorityOverrides: { 'bios.tune': 0 } }] }, 'pool "gpu"'],
  ['fleet', { priorityOverrides: { 'bios.tune': 0 } }, 'of the fleet'],
])(
  'a step that the %s disables says by whom',
  (_, { policy: own, ...ofFleet }: PrioritySettings, text) => {
    const plan = cleanPlan({
      known: tuned,
      pool: 'gpu',
      fleet: create(FleetSpecSchema, ofFleet),
      policy: create(CleaningPolicySchema, own),
    });
    expect(plan.enabled).toEqual([]);
    expect(plan.disabled[0]?.disabledReason).toContain(text);
  },
);

interface PrioritySettings {
  readonly policy?: { readonly priorityOverrides: Record<string, number> };
  readonly pools?: { readonly pool: string; readonly priorityOverrides: Record<string, number> }[];
  readonly priorityOverrides?: Record<string, number>;
}

test('a step with an argument that somebody must give runs only when asked for', () => {
  const description = create(agent.StepDescriptionSchema, {
    name: 'raid.build',
    priority: 50,
    typedArguments: [{ name: 'level', required: true }],
  });
  const { enabled, disabled } = cleanPlan({ known: [{ description, source: 'runner' }] });
  expect(enabled).toEqual([]);
  expect(disabled[0]?.disabledReason).toBe('it needs level: it runs only when asked for with that');
});

test('an override that names nothing is a warning, with where it stands', () => {
  const { warnings } = cleanPlan({
    known: tuned,
    pool: 'gpu',
    policy: create(CleaningPolicySchema, { priorityOverrides: { 'deploy.polish': 1 } }),
    fleet: create(FleetSpecSchema, { priorityOverrides: { 'deploy.wax': 1 } }),
  });
  expect(warnings).toEqual([
    'priority_overrides names deploy.polish, which is no known step',
    'priority_overrides of the fleet names deploy.wax, which is no known step',
  ]);
});

test('steps of the agent stand among those of the runner, and need no ramdisk', () => {
  const { enabled } = cleanPlan({
    known: [
      known('raid.build', 10),
      known('management.reset', 10, 'agent'),
      known('vendor.a', 10),
      known('bios.b', 10),
      known('bios.a', 10),
    ],
  });
  expect(enabled.map(({ name }) => name)).toEqual([
    'vendor.a',
    'management.reset',
    'bios.a',
    'bios.b',
    'raid.build',
  ]);
  expect(enabled[1]).toMatchObject({ source: 'agent', needsRamdisk: false });
  expect(enabled[0]).toMatchObject({ source: 'runner', needsRamdisk: true });
});

const image = `registry.example.org/tools/check@sha256:${'a'.repeat(64)}`;
const withOwn = (priority: number) =>
  create(FleetSpecSchema, { ownCleanSteps: [{ name: 'burn_in', priority, image }] });
const ofRunner = builtInSteps.map((description) => ({ description, source: 'runner' as const }));

test.each([
  [100, ['own.burn_in', 'vendor.polish', eraseStep, 'vendor.seal'], false],
  [30, ['vendor.polish', 'own.burn_in', eraseStep, 'vendor.seal'], false],
  [10, ['vendor.polish', 'own.burn_in', eraseStep, 'vendor.seal'], true],
  [1, ['vendor.polish', 'own.burn_in', eraseStep, 'vendor.seal'], true],
])(
  'a program of priority %i stands where that says, but behind no erasure',
  (own, names, warns) => {
    const steps = [...ownSteps(withOwn(own)), ...ofRunner];
    const others = [known('vendor.polish', 50), known('vendor.seal', 5)];
    const { enabled, warnings } = cleanPlan({ known: [...others, ...steps] });
    expect(enabled.map(({ name }) => name)).toEqual(names);
    expect(warnings.join().includes('own.burn_in')).toBe(warns);
  },
);

test('a program is listed with what it runs, and disabled where others are', () => {
  const all = [...ownSteps(withOwn(100)), ...ofRunner];
  expect(cleanPlan({ known: all }).enabled[0]).toMatchObject({
    ...{ name: 'own.burn_in', priority: 100, priorityFrom: 'step', source: 'fleet' },
    ...{ destructive: true, needsRamdisk: true, rerunClass: RerunClass.NEVER_TWICE },
    own: { image },
  });
  const off = create(CleaningPolicySchema, { priorityOverrides: { 'own.burn_in': 0 } });
  const { enabled, disabled } = cleanPlan({ known: all, policy: off });
  expect(enabled.map(({ name }) => name)).toEqual([eraseStep]);
  expect(disabled.find(({ name }) => name === 'own.burn_in')).toMatchObject({
    priorityFrom: 'host',
    disabledReason: 'priority_overrides sets its priority to 0',
  });
});
