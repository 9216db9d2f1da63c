/** Plans and runs as they are printed. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  FailureType,
  HostRefusal,
  PlannedStepSchema,
  PlanSchema,
  RerunClass,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  StepState,
} from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { describe, expect, test } from 'vitest';
import { planLines } from './plan.ts';
import { runLines } from './run.ts';

const clock = nodeClock();
const hash = 'ab'.repeat(32);

function planOf(more: {
  readonly refused?: string;
  readonly refusal?: HostRefusal;
  readonly dataLoss?: string[];
}) {
  return create(PlanSchema, {
    name: `hosts/h1/plans/${hash}`,
    hash,
    kind: RunKind.CLEAN,
    expireTime: timestampFromMs(clock.nowMs() + 7_200_500),
    usualDuration: durationFromMs(754_000),
    steps: [
      { step: 'power.off', rerunClass: RerunClass.SAFE, usualDuration: durationFromMs(4_000) },
      { step: 'deploy.erase_devices', destructive: true, rerunClass: RerunClass.CHECK_FIRST },
    ],
    devices: [
      { serial: 'S1', sizeBytes: 480_103_981_056n, kernelName: 'sda', fate: 'erase: overwrite' },
    ],
    dataLoss: ['disk S1 (480 GB): all that is on it'],
    ...more,
  });
}

describe('a plan', () => {
  test('shows steps, disks, what is lost, and how it is started', () => {
    expect(planLines(planOf({}), clock, 100)).toEqual([
      'hosts/h1: clean, 2 steps, usually 12m 34s; nothing has been started',
      '',
      '#  STEP                  DESTROYS  AFTER A CRASH  USUALLY',
      '1  power.off             -         safe           4s',
      '2  deploy.erase_devices  yes       check-first    -',
      '',
      'DISK  SIZE    SEEN AS  WHAT HAPPENS',
      'S1    480 GB  sda      erase: overwrite',
      '',
      'Lost for ever:',
      '  disk S1 (480 GB): all that is on it',
      '',
      'Start it (expires in 2h):',
      `  rackwright host start h1 ${hash}`,
    ]);
  });

  test('a plan that would be refused says why instead of how it is started', () => {
    const lines = planLines(
      planOf({ refusal: HostRefusal.BUSY, refused: 'busy: clean 3 \u001b[31m', dataLoss: [] }),
      clock,
      100,
    );
    expect(lines).toContain('No data is lost.');
    expect(lines.at(-1)).toBe('It would be refused now: busy: clean 3 �[31m');
    expect(lines.join('\n')).not.toContain('host start');
  });
});

test('a plan names what may hold a secret, and shows the rest of the arguments', () => {
  const plan = planOf({ dataLoss: [] });
  const given = {
    url: 'https://hooks.example.org/secret?key=secret',
    method: 'POST',
    headers: '{"authorization":"Bearer secret"}',
    body: 'secret',
  };
  plan.steps = [create(PlannedStepSchema, { step: 'webhook', title: 'tell', arguments: given })];
  const shown = planLines(plan, clock, undefined).join('\n');
  expect(shown).toContain('body=… headers=… method=POST url=https://hooks.example.org/…');
  expect(shown).not.toContain('secret');
});

test('a run shows why it failed, who skipped what, and how programs ended', () => {
  const run = create(RunSchema, {
    kind: RunKind.WORKFLOW,
    number: asRunNumber(7),
    phase: RunPhase.ENDED,
    outcome: RunOutcome.FAILED,
    startTime: timestampFromMs(0),
    endTime: timestampFromMs(61_000),
    error: { type: FailureType.EXIT_CODE, message: 'check ended with 3' },
    steps: [
      { name: 'hold', title: 'look', state: StepState.SKIPPED, skip: { by: 'user:ann' } },
      {
        name: 'run.script',
        title: 'check',
        state: StepState.FAILED,
        attempt: 2,
        error: 'it ended with 3',
        exit: { code: 3 },
      },
    ],
  });
  const text = runLines(run, clock, 120).join('\n');
  expect(text).toContain('workflow 7');
  expect(text).toMatch(/took\s+1m 1s/);
  expect(text).toMatch(/look \(hold\)\s+skipped.*skipped by user:ann/);
  expect(text).toMatch(/check \(run\.script\)\s+failed\s+2\s+-\s+3\s+it ended with 3/);
});
