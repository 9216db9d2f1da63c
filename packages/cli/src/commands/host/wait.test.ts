/** `--wait`, over a control plane that tells what the test says. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  bind,
  FailureType,
  GivenUpCause,
  HistoryService,
  HostGoal,
  HostSchema,
  HostService,
  HostState,
  WatchHostsResponse_Kind as Kind,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  StepState,
  WatchHostsResponseSchema,
} from '@rackwright/messages';
import { localChannel } from '@rackwright/rpc';
import { describe, expect, test } from 'vitest';
import { type GivenWorld, runOver } from '../../command-io.fixture.ts';
import { exitCodes } from '../../failure.ts';

type Status = NonNullable<MessageInitShape<typeof HostSchema>['status']>;
type RunInit = NonNullable<MessageInitShape<typeof RunSchema>>;

const settings = {
  environment: {
    RACKWRIGHT_SERVER: 'box:7440',
    RACKWRIGHT_TOKEN_FILE: '/token',
    RACKWRIGHT_CA_FILE: '/ca',
  },
  files: { '/token': 'token', '/ca': 'ca' },
};

const hostOf = (status: Status, name = 'hosts/h1') =>
  create(HostSchema, { name, spec: { goal: HostGoal.AVAILABLE }, status });

const cleaning = (more: object = {}): Status => ({
  state: HostState.MANAGEABLE,
  display: 'cleaning',
  run: {
    kind: RunKind.CLEAN,
    number: asRunNumber(7),
    phase: RunPhase.RUNNING,
    startTime: timestampFromMs(0),
    currentStep: 1,
    steps: [
      { name: 'power.bootRunner' },
      { name: 'deploy.erase_devices', state: StepState.RUNNING },
    ],
    ...more,
  },
  progress: { percent: 40 },
});
const ended = (outcome: RunOutcome, more: object = {}): Status =>
  cleaning({ phase: RunPhase.ENDED, outcome, ...more });

/** A control plane that answers with the first of these, and tells the others by its watch. */
function controlPlane([answer = {}, ...told]: readonly Status[], older?: RunInit) {
  const services = [
    bind(HostService, {
      getHost: async () => hostOf(answer),
      cleanHost: async () => hostOf(answer),
      deleteHost: async () => hostOf(answer),
      releaseHost: async () => hostOf(answer),
      explainHost: async () => ({ usualDuration: { seconds: 60n } }),
      watchHosts: async function* () {
        for (const status of told) {
          const isGone = status.state === HostState.GONE;
          const kind = isGone ? Kind.DELETED : Kind.UPDATED;
          yield create(WatchHostsResponseSchema, { kind, host: hostOf(status), position: 'p' });
        }
        yield create(WatchHostsResponseSchema, { kind: Kind.SYNCED, position: 'q' });
        await new Promise(() => undefined);
      },
    } as never),
    bind(HistoryService, { getHostRun: async () => create(RunSchema, older) } as never),
  ];
  return () => localChannel(services);
}

async function waited(
  statuses: readonly Status[],
  commandArgs: readonly string[] = ['clean'],
  given: GivenWorld & { readonly older?: RunInit } = {},
) {
  const connect = controlPlane(statuses, given.older);
  const args = ['host', ...commandArgs, 'h1', '--yes', '--wait'];
  return runOver(args, { ...settings, connect, ...given });
}

describe('--wait', () => {
  test('ends with the run that was started, and shows the host as it is then', async () => {
    const { code, out, err } = await waited([
      cleaning(),
      cleaning({ currentStep: 0 }),
      { ...ended(RunOutcome.SUCCEEDED), state: HostState.AVAILABLE, display: 'available' },
    ]);
    expect([code, out]).toEqual([0, expect.stringMatching(/state +available/)]);
    const lines = err.trim().split('\n');
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d {2}hosts\/h1 {2}clean 7: 2\/2 deploy.erase_devices {2}70%$/,
    );
    expect(new Set(lines).size).toBe(lines.length);
    expect(err).not.toContain('\r');
  });

  test('says why a run failed, and exits so that a script knows', async () => {
    const error = { type: FailureType.LOCKED_OUT, message: 'sda cannot be written' };
    const { code, err, out } = await waited([cleaning(), ended(RunOutcome.FAILED, { error })]);
    expect([code, out]).toEqual([exitCodes.workFailed, '']);
    expect(err).toContain('clean 7 of hosts/h1 failed: ');
    expect(err).toContain('sda cannot be written; see `rackwright host explain h1`');
  });

  test('ends at once where only a person can go on', async () => {
    const waiting = { reason: 'hold', message: 'somebody has to look' };
    const held = cleaning({ phase: RunPhase.WAITING, waiting });
    const { code, err } = await waited([cleaning(), held]);
    expect(code).toBe(exitCodes.stuck);
    expect(err).toContain('clean 7 has not ended: it waits for a person: somebody has to look');
  });

  test('ends at once where the goal is given up', async () => {
    const state = HostState.MANAGEABLE;
    const backoff = {
      givenUp: GivenUpCause.HOPELESS,
      givenUpReason: 'the BMC refused user root',
    };
    const { code, err } = await waited([cleaning(), { state, backoff }], ['release']);
    expect(code).toBe(exitCodes.stuck);
    expect(err).toContain('it is not available: Rackwright stopped trying: the BMC refused');
  });

  test('takes the end of its own run from the history when another has come after it', async () => {
    const later = cleaning({ number: 8n });
    const outcome = RunOutcome.SUCCEEDED;
    expect((await waited([cleaning(), later], ['clean'], { older: { outcome } })).code).toBe(0);
    const failed = { older: { outcome: RunOutcome.FAILED } };
    const { code } = await waited([cleaning(), later], ['clean'], failed);
    expect(code).toBe(exitCodes.workFailed);
  });

  test('the wait for a deletion ends when the host is gone, told or not', async () => {
    const gone: Status = { state: HostState.GONE };
    const deleted = await waited([cleaning(), gone], ['delete']);
    expect(deleted).toMatchObject({ code: 0, out: 'hosts/h1 removed\n' });
    expect((await waited([cleaning()], ['delete'])).code).toBe(0);
  });

  test('does not wait where nothing was started: an older run says nothing', async () => {
    const { code, err } = await waited([ended(RunOutcome.FAILED)]);
    expect([code, err]).toEqual([0, '']);
  });

  test('leaves the work going on Ctrl-C, and says how to look', async () => {
    const signal = AbortSignal.timeout(300);
    const { code, err } = await waited([cleaning(), cleaning()], ['clean'], { signal });
    expect(code).toBe(exitCodes.interrupted);
    expect(err).toContain('no longer waiting; the work goes on: `rackwright host watch h1`');
  });

  test('draws one line on a terminal, never wider than it, and takes it away', async () => {
    const { err } = await waited([cleaning(), ended(RunOutcome.SUCCEEDED)], ['clean'], {
      columns: 80,
    });
    const lines = err.split('\r\x1b[K').filter(Boolean);
    expect(lines[0]).toContain('[');
    for (const line of lines) expect(line.length).toBeLessThan(80);
    expect(err.endsWith('\r\x1b[K')).toBe(true);
    expect(err).not.toContain('\n');
  });
});
