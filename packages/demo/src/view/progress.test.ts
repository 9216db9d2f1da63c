import { create } from '@bufbuild/protobuf';
import {
  type Host,
  HostSchema,
  HostState,
  RunKind,
  RunPhase,
  RunStepSchema,
} from '@rackwright/messages';
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

test('step, percent and the wait are shown, short enough for a narrow terminal', () => {
  expect(hostProgress(hostAt(RunKind.CLEAN, 1, 40))).toMatchObject({
    name: 'h1',
    rack: 'r1',
    state: 'waits for runner',
    detail: '2/2 erase_devices 40 %',
    mood: 'busy',
  });
});

test('the progress never goes back on the way from verified to available', () => {
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

test('a deployed host is shown with its image, and a deployment with its step', () => {
  const image = `127.0.0.1:5000/web@sha256:${'ab'.repeat(32)}`;
  const atImage = { state: HostState.PROVISIONED, image };
  const serving = create(HostSchema, { status: atImage });
  expect(hostProgress(serving)).toMatchObject({
    ...{ fraction: 1, detail: 'runs web@sha256:abababababab', mood: 'done' },
  });
  const lastError = { failure: { message: 'the file ends early' } };
  const failed = create(HostSchema, { status: { ...atImage, lastError } });
  expect(hostProgress(failed)).toMatchObject({ detail: 'the file ends early', mood: 'troubled' });
  const deploying = hostAt(RunKind.PROVISION, 1, 50);
  if (deploying.status !== undefined) deploying.status.state = HostState.AVAILABLE;
  expect(hostProgress(deploying)).toMatchObject({ fraction: 0.75, mood: 'busy' });
});

test('a problem is shown in place of the step', () => {
  const troubled = create(HostSchema, {
    status: { state: HostState.NEW, lastError: { failure: { message: 'no such user' } } },
  });
  expect(hostProgress(troubled)).toMatchObject({ detail: 'no such user', mood: 'troubled' });
});
