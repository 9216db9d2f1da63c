/** The power of a host after a failed run, by how far the run got. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  HostState,
  RunKind,
  RunOutcome,
  RunSchema,
  type RunStepSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { DiskAfter } from '../deployment/deployment.ts';
import { beginPass } from '../pass/pass.ts';
import { bench } from '../testing/bench.ts';
import { restorePower } from './power-after.ts';

type StepInit = Exclude<MessageInitShape<typeof RunStepSchema>, { $typeName: string }>;

const nowMs = Date.UTC(2026, 0, 1);
const { AVAILABLE, PROVISIONED, MANAGEABLE } = HostState;
const { SERVICE, WORKFLOW, REIMAGE, INSPECT, CLEAN } = RunKind;
const { FAILED, CANCELLED } = RunOutcome;
/** Attempted, and only planned. */
const [did, plans] = [1, 0];
const step = (name: string, attempt: number, more: StepInit = {}): StepInit => ({
  ...{ name, attempt },
  ...more,
});
const wentOff = step('power.off', did);
const booted = step('power.bootRunner', did);
const toBoot = step('power.bootRunner', plans);
const toOn = step('power.on', plans);
const handOff = { title: 'kexec', handOff: true };

interface Ended {
  readonly steps: readonly StepInit[];
  readonly outcome?: RunOutcome;
  readonly disk?: DiskAfter;
  /** A person has to look at the host first. */
  readonly looks?: boolean;
}

function powerOf(state: HostState, kind: RunKind, ended: Ended) {
  const { steps, outcome = FAILED, disk, looks = false } = ended;
  const host = bench();
  if (host.record.host?.status === undefined) throw new Error('a host has a status');
  host.record.host.status.state = state;
  if (looks) host.record.lookFirstSince = timestampFromMs(nowMs);
  const pass = beginPass(host.record, { ...host.snapshot, nowMs });
  const run = create(RunSchema, { kind, outcome, steps: [...steps], currentStep: steps.length });
  restorePower(pass, run, disk);
  return pass.record.pendingPower?.steps.map((name) => name.replace('power.', '')).join(' ') ?? '';
}

test.each<[string, HostState, RunKind, Ended, string]>([
  ['was booted', AVAILABLE, SERVICE, { steps: [wentOff, booted] }, 'off'],
  ['was not booted yet', AVAILABLE, SERVICE, { steps: [wentOff, toBoot] }, ''],
  [
    'was not even switched off',
    AVAILABLE,
    SERVICE,
    { steps: [step('power.off', plans), booted] },
    '',
  ],
  ['is to be looked at', AVAILABLE, SERVICE, { steps: [wentOff, booted], looks: true }, ''],
  ['served, and was to be on', PROVISIONED, SERVICE, { steps: [wentOff, booted, toOn] }, 'off on'],
  ['was off before its service', PROVISIONED, SERVICE, { steps: [wentOff, booted] }, ''],
  ['was not touched by its clean', PROVISIONED, CLEAN, { steps: [wentOff, booted] }, ''],
  ['lost its image', PROVISIONED, REIMAGE, { steps: [wentOff], disk: 'lost' }, 'off'],
  ['kept its image', PROVISIONED, REIMAGE, { steps: [wentOff], disk: 'untouched' }, 'off on'],
  ['was written, and not on', PROVISIONED, REIMAGE, { steps: [wentOff], disk: 'whole' }, 'off on'],
  [
    'was written, and is on',
    PROVISIONED,
    REIMAGE,
    { steps: [wentOff, step('power.on', did, { endTime: timestampFromMs(1) })], disk: 'whole' },
    '',
  ],
  [
    'was written, untouched, and was on',
    PROVISIONED,
    REIMAGE,
    { steps: [wentOff, step('power.on', did, { endTime: timestampFromMs(1) })], disk: 'untouched' },
    'off on',
  ],
  [
    'was being looked at when a person stopped that',
    MANAGEABLE,
    INSPECT,
    { steps: [wentOff, booted], outcome: CANCELLED },
    'off',
  ],
  [
    'was not booted yet when a person stopped the look',
    MANAGEABLE,
    INSPECT,
    { steps: [wentOff, toBoot], outcome: CANCELLED },
    '',
  ],
  ['was looked at in vain', MANAGEABLE, INSPECT, { steps: [wentOff, booted] }, ''],
  [
    'was being cleaned when a person stopped that',
    MANAGEABLE,
    CLEAN,
    { steps: [wentOff, booted], outcome: CANCELLED },
    '',
  ],
])('a host that %s gets its power back, or stays as it is', (_name, state, kind, ended, power) => {
  expect(powerOf(state, kind, ended)).toBe(power);
});

test.each<[string, readonly StepInit[], string]>([
  ['has moved nothing itself', [wentOff, booted, toOn], 'off on'],
  ['has handed the host over', [wentOff, step('run.script', did, handOff), toOn], ''],
  ['was to hand it over', [wentOff, booted, step('run.script', plans, handOff), toOn], 'off on'],
  [
    'has switched it off last',
    [wentOff, step('power.off', did, { title: 'off', arguments: { power: 'powerOff' } }), toOn],
    '',
  ],
  [
    'has booted its disk last',
    [wentOff, step('power.on', did, { title: 'up', arguments: { power: 'bootDisk' } }), toOn],
    '',
  ],
  [
    'has booted its disk, and the runner after that',
    [wentOff, step('power.on', did, { arguments: { power: 'bootDisk' } }), booted, toOn],
    'off on',
  ],
  ['found the host off', [wentOff, booted], ''],
  [
    'switches it on only itself',
    [wentOff, booted, step('power.on', plans, { title: 'up', arguments: { power: 'powerOn' } })],
    '',
  ],
])(
  'a host in use whose workflow %s gets its power back, or stays as it is',
  (_name, steps, power) => {
    expect(powerOf(PROVISIONED, WORKFLOW, { steps })).toBe(power);
  },
);
