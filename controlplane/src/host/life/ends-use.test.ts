/** What a person may do manually with a host of a pool. */
import { create } from '@bufbuild/protobuf';
import { agent, asWorkflowUid, HostState, RerunClass, SkipCause } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass } from '../pass/pass.ts';
import type { HostRequest, WorkflowStep } from '../pass/types.ts';
import { bmcStep, rendered, script, workable } from '../testing/templates.ts';
import { endsUse } from './ends-use.ts';

const flash = 'bios.flash';
const host = workable(HostState.PROVISIONED);
const agentSteps = [
  ...(host.snapshot.agentSteps ?? []),
  create(agent.StepDescriptionSchema, {
    ...{ name: flash, destructive: true, rerunClass: RerunClass.SAFE },
  }),
];
const pass = beginPass(host.record, { ...host.snapshot, agentSteps, nowMs: host.nowMs });
const ends = (request: HostRequest) => endsUse(pass, request);

test('an inspection, a rescue and a power switch end no use; a clean and a deploy do', () => {
  const bootOldDiskReason = '';
  for (const request of [
    { kind: 'abort', reason: '' },
    { kind: 'inspect' },
    { kind: 'powerOn', bootOldDiskReason },
    { kind: 'powerOff' },
    { kind: 'powerReset', bootOldDiskReason },
    { kind: 'rescue', reason: '' },
  ] satisfies HostRequest[]) {
    expect(ends(request)).toBe(false);
  }
  for (const request of [
    { kind: 'clean', steps: [] },
    { kind: 'release', reason: '' },
    { kind: 'provision', image: 'os' },
    { kind: 'reimage', image: 'os' },
  ] satisfies HostRequest[]) {
    expect(ends(request)).toBe(true);
  }
});

test('a service ends the use of its host if one of its steps destroys something', () => {
  const service = (...steps: string[]) =>
    ends({ kind: 'service', steps: steps.map((step) => ({ step, arguments: {} })) });
  expect(service()).toBe(false);
  expect(service(bmcStep)).toBe(false);
  expect(service(flash)).toBe(true);
  expect(service(bmcStep, flash)).toBe(true);
});

test.each<[string, readonly WorkflowStep[], boolean]>([
  ['only looks', [script('a')], false],
  ['destroys something', [script('a'), script('b', { destructive: true })], true],
  ['hands the host over', [script('a', { handOff: true }), script('b')], true],
  [
    'destroys nothing, for that is skipped',
    [script('a', { destructive: true, skipCause: SkipCause.NEVER }), script('b')],
    false,
  ],
  [
    'hands nothing over, for that is skipped',
    [script('a', { handOff: true, skipCause: SkipCause.NEVER })],
    false,
  ],
  ['asks the BMC', [rendered('a', bmcStep)], false],
])('a workflow that %s ends the use of its host: %j', (_, steps, isOver) => {
  const named = {
    workflowRun: 'r',
    workflowUid: asWorkflowUid('w'),
    templateDigest: 'd',
    timeoutMs: undefined,
  };
  expect(ends({ kind: 'workflow', ...named, steps: [...steps] })).toBe(isOver);
});
