import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  ApiFailure,
  GivenUpCause,
  HoldScope,
  HostSchema,
  HostState,
  HostStateSchema,
  WatchHostsResponse_Kind as Kind,
  RunKind,
  RunPhase,
  type WatchHostsResponse,
  WatchHostsResponseSchema,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { ioOver } from '../../command-io.fixture.ts';
import { exitCodes } from '../../failure.ts';
import { describeFailure, exitCodeOf } from '../../failure-text.ts';
import { enumName } from '../../output/enum-name.ts';
import type { OpenWatch } from '../frame/resumed-watch.ts';
import { untilWords } from './target.ts';
import { showUntil } from './watch.ts';

type Until = (typeof untilWords)[number];
type Status = NonNullable<MessageInitShape<typeof HostSchema>['status']>;

/** Ends as the client's streams do when their deadline is over. */
const late = () =>
  new ApiFailure({ kind: 'deadlineExceeded', message: 'no answer in time', reason: '' });

/** Watches a host that is shown in these states one after the other, and then no more. */
async function watched(until: Until, statuses: readonly Status[]) {
  const { io, written } = ioOver();
  const open: OpenWatch<WatchHostsResponse> = async function* () {
    for (const status of statuses) {
      const host = create(HostSchema, { name: 'hosts/h1', status });
      yield create(WatchHostsResponseSchema, { kind: Kind.UPDATED, host, position: 'p' });
    }
    yield create(WatchHostsResponseSchema, { kind: Kind.SYNCED, position: 'p' });
    throw late();
  };
  const flags = { until, timeout: 1, output: 'table' } as const;
  const ended = showUntil(io, flags, 'hosts/h1', open);
  const error: unknown = await ended.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  const code = error === undefined ? 0 : exitCodeOf(error);
  return { code, err: error === undefined ? '' : describeFailure(error), out: written.out };
}

const cleaning: Status = {
  state: HostState.MANAGEABLE,
  display: 'cleaning',
  run: { kind: RunKind.CLEAN, phase: RunPhase.RUNNING },
};

const states: readonly [Until, HostState][] = [
  ['new', HostState.NEW],
  ['manageable', HostState.MANAGEABLE],
  ['available', HostState.AVAILABLE],
  ['provisioned', HostState.PROVISIONED],
  ['external', HostState.EXTERNAL],
  ['gone', HostState.GONE],
];

test('each state of a host can be waited for', async () => {
  const names = HostStateSchema.values.map(({ number }) => enumName('HostState', number));
  const known = names.filter((name) => name !== '');
  expect([...untilWords].sort()).toEqual([...known, 'deleted'].sort());
  for (const [until, state] of states) {
    const elsewhere = { state: HostState.UNSPECIFIED };
    expect((await watched(until, [elsewhere, { state }])).code).toBe(0);
    expect((await watched(until, [elsewhere])).code).toBe(exitCodes.timedOut);
  }
});

describe('a host that does not come there by itself ends the watch at once', () => {
  const waiting = (reason: string): Status => ({
    ...cleaning,
    run: {
      kind: RunKind.CLEAN,
      phase: RunPhase.WAITING,
      waiting: { reason, message: 'somebody has to look' },
    },
  });
  const state = HostState.MANAGEABLE;
  test.each<[string, Status, string]>([
    ['held at a step', waiting('hold'), 'waits for a person: somebody has to look'],
    ['restored', waiting('restored'), 'waits for a person'],
    [
      'given up',
      {
        state,
        backoff: {
          givenUp: GivenUpCause.HOPELESS,
          givenUpReason: 'the BMC refused user root',
        },
      },
      'Rackwright stopped trying: the BMC refused user root',
    ],
    [
      'held',
      { state, holds: [{ scope: HoldScope.WORK, by: 'user:bob', reason: 'a look' }] },
      'user:bob holds it: a look',
    ],
    [
      'that boots from an interface that nobody has found',
      {
        state,
        faults: [{ type: 'bootMacUnknown', message: 'it is on no interface' }],
        run: { kind: RunKind.INSPECT, phase: RunPhase.ENDED },
      },
      'it is on no interface',
    ],
  ])('the watch ends at a host %s', async (_name, status, why) => {
    const { code, err } = await watched('available', [cleaning, status]);
    expect(err).toContain(`hosts/h1 is not available: `);
    expect(err).toContain(why);
    expect(err).toContain('rackwright host explain h1');
    expect(code).toBe(exitCodes.stuck);
  });

  test('the watch ends at a host that was to be provisioned when that failed', async () => {
    const faults = [{ type: 'provisionFailed', message: 'the image does not boot' }];
    const { code, err } = await watched('provisioned', [{ state, faults }]);
    expect([code, err]).toEqual([exitCodes.stuck, expect.stringContaining('does not boot')]);
  });
});

test('a transient problem does not end the watch, and a timeout is reported', async () => {
  const { code, err } = await watched('available', [
    { ...cleaning, run: { phase: RunPhase.WAITING, waiting: { reason: 'bmc', message: '' } } },
    { state: HostState.MANAGEABLE, backoff: { failures: 1 } },
    cleaning,
  ]);
  expect(err).toContain('hosts/h1 is not available after 1 s: hosts/h1  cleaning');
  expect(err).toContain('rackwright host explain h1');
  expect(code).toBe(exitCodes.timedOut);
});

test('a control plane that says nothing at all was not reached', async () => {
  const { io } = ioOver();
  const open: OpenWatch<WatchHostsResponse> = async function* () {
    yield* [];
    throw late();
  };
  const silent = showUntil(io, { timeout: 1, output: 'table' }, 'hosts/h1', open);
  const error: unknown = await silent.catch((cause: unknown) => cause);
  expect(exitCodeOf(error)).toBe(exitCodes.unreachable);
});
