import { create } from '@bufbuild/protobuf';
import {
  type Host,
  HostSchema,
  HostState,
  RunKind,
  RunPhase,
  RunStepSchema,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { hostProgress } from './progress.ts';

function hostAt(kind: RunKind, currentStep: number, percent?: number): Host {
  const steps = ['power.off', 'deploy.erase_devices'].map((name) =>
    create(RunStepSchema, { name }),
  );
  return create(HostSchema, {
    name: 'hosts/h1',
    spec: { rack: 'racks/r1' },
    status: {
      state: kind === RunKind.VERIFY ? HostState.NEW : HostState.MANAGEABLE,
      display: 'cleaning, waiting for runner',
      run: { kind, phase: RunPhase.RUNNING, steps, currentStep },
      ...(percent === undefined ? {} : { progress: { percent } }),
    },
  });
}

test('says step, percent and what is waited for, short enough for a narrow terminal', () => {
  expect(hostProgress(hostAt(RunKind.CLEAN, 1, 40))).toMatchObject({
    name: 'h1',
    rack: 'r1',
    state: 'waits for runner',
    detail: '2/2 erase_devices 40 %',
    mood: 'busy',
  });
});

test('never goes back on the way from verified to available', () => {
  const way = [
    hostAt(RunKind.VERIFY, 0),
    hostAt(RunKind.VERIFY, 1),
    hostAt(RunKind.INSPECT, 0),
    hostAt(RunKind.INSPECT, 1),
    hostAt(RunKind.CLEAN, 0),
    hostAt(RunKind.CLEAN, 1),
    hostAt(RunKind.CLEAN, 1, 50),
    hostAt(RunKind.CLEAN, 1, 100),
    hostAt(RunKind.CLEAN, 2),
    create(HostSchema, { status: { state: HostState.AVAILABLE } }),
  ].map((host) => hostProgress(host).fraction);
  expect(way).toEqual(way.toSorted((one, other) => one - other));
  expect(way.at(-1)).toBe(1);
  expect(way.at(-2)).toBeLessThan(1);
});

test('shows what is wrong in place of the step', () => {
  const troubled = create(HostSchema, {
    status: { state: HostState.NEW, lastError: { failure: { message: 'no such user' } } },
  });
  expect(hostProgress(troubled)).toMatchObject({ detail: 'no such user', mood: 'troubled' });
});
