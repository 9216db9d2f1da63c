import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type OwnCleanStep, OwnCleanStepSchema, RerunClass } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { ownArguments, ownStepProblems, ownSteps } from './own-steps.ts';

const image = `registry.example.org/tools/check@sha256:${'a'.repeat(64)}`;
const policy = {
  imageRepositories: ['registry.example.org/tools/*'],
  ...{ plainHttpRegistries: [], webhookUrls: [], credentials: [] },
  ...{ registryCredentials: {}, registryTokenServices: {} },
};
type Own = Partial<Omit<OwnCleanStep, '$typeName' | '$unknown'>>;
const step = (more: Own = {}) => create(OwnCleanStepSchema, { name: 'burn_in', image, ...more });

test('a step with every field set is valid, and becomes a command of the runner', () => {
  const full = step({
    ...{ priority: 1_000, arguments: ['--all', '5'], environment: { LANG: 'C' } },
    ...{ directory: '/tmp', retries: 10, onFailure: 'continue', onTimeout: 'hold' },
    idempotent: true,
  });
  expect(ownStepProblems([step(), { ...full, name: 'other' }], policy)).toEqual([]);
  expect(ownArguments(full)).toEqual({
    ...{ image, arguments: '["--all","5"]', environment: '{"LANG":"C"}', directory: '/tmp' },
  });
  const fleet = { ownCleanSteps: [step(), full] } as Parameters<typeof ownSteps>[0];
  expect(ownSteps(fleet).map(({ description }) => description)).toMatchObject([
    { name: 'own.burn_in', priority: 100, rerunClass: RerunClass.NEVER_TWICE, destructive: true },
    { name: 'own.burn_in', priority: 1_000, rerunClass: RerunClass.SAFE, destructive: true },
  ]);
});

test.each<[string, Own]>([
  ['name', { name: 'Burn' }],
  ['name', { name: '' }],
  ['name', { name: 'a.b' }],
  ['priority', { priority: 1_001 }],
  ['image', { image: 'registry.example.org/tools/check:latest' }],
  ['image', { image: image.replace('tools', 'toys') }],
  ['arguments', { arguments: Array<string>(101).fill('') }],
  ['arguments', { arguments: ['a\0'] }],
  ['environment', { environment: { RACKWRIGHT_HOST: 'h2' } }],
  ['environment', { environment: { A: '\0' } }],
  ['directory', { directory: 'tmp' }],
  ['directory', { directory: '/a/../b' }],
  ['timeout', { timeout: durationFromMs(0) }],
  ['timeout', { timeout: durationFromMs(86_401_000) }],
  ['retries', { retries: 11 }],
  ['on_failure', { onFailure: 'tidy' }],
  ['on_timeout', { onTimeout: 'ignore' }],
  ['description', { description: 'a'.repeat(501) }],
])('a wrong %s is told by its field (%#)', (field, wrong) => {
  const found = ownStepProblems([step({ name: 'first' }), step(wrong)], policy);
  expect(found.map((each) => each.field)).toEqual([`[1].${field}`]);
});

test('a list is bounded as a whole, and no name stands in it twice', () => {
  expect(ownStepProblems([step(), step()], policy)).toEqual([
    { field: '[1].name', description: 'names a step that is named before' },
  ]);
  const many = Array.from({ length: 17 }, (_, index) => step({ name: `s${index}` }));
  expect(ownStepProblems(many, policy)).toMatchObject([{ field: '' }]);
  const large = step({ arguments: ['a'.repeat(17_000)] });
  expect(ownStepProblems([large], policy)).toMatchObject([{ field: '' }]);
});

test('a step is refused if the fleet permits no image repository', () => {
  const [problem] = ownStepProblems([step()], undefined);
  expect(problem).toMatchObject({
    field: '[0].image',
    description: expect.stringContaining('--image-repository registry.example.org/tools/check'),
  });
});
