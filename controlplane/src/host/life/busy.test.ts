/** What prevents the deletion of a host, and what no longer does. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  HoldScope,
  HostState,
  HostStatusSchema,
  RunKind,
  RunPhase,
  type RunSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass, type Pass } from '../pass/pass.ts';
import { bench } from '../testing/bench.ts';
import { busyText, busyWith } from './busy.ts';

const atMs = Date.UTC(2026, 0, 1);
const at = timestampFromMs(atMs);
const claim = { by: 'pools/p', reason: 'a host of the pool', at };

type StatusInit = Exclude<MessageInitShape<typeof HostStatusSchema>, { $typeName: string }>;
type RunInit = Exclude<MessageInitShape<typeof RunSchema>, { $typeName: string }>;

/** A host with this status, an hour after the run began to wait. */
function passWith(status: StatusInit): Pass {
  const host = bench();
  const { record } = host;
  if (record.host === undefined) throw new Error('the bench has a host');
  record.host.status = create(HostStatusSchema, { state: HostState.PROVISIONED, ...status });
  const nowMs = atMs + 3_600_000;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('the bench has an agent');
  return beginPass(record, {
    ...host.snapshot,
    nowMs,
    session: { ...session, lastMessageMs: nowMs },
  });
}

/** A run that waits for `reason` since then. */
const runWaiting = (reason: string, more: RunInit = {}): RunInit => ({
  ...{
    kind: RunKind.REIMAGE,
    number: asRunNumber(3),
    phase: RunPhase.WAITING,
    requestedBy: 'pools/p',
  },
  ...{ waiting: { reason, since: at }, startTime: at },
  ...more,
});

test('a pool’s claim protects no run of its own that nobody can do any more', () => {
  expect(busyWith(passWith({ claim }))?.holder).toBe('claimed by pools/p (a host of the pool)');
  expect(busyWith(passWith({ claim, run: runWaiting('agent') }))).toBeUndefined();
  const others = [
    { claim, run: runWaiting('agent', { requestedBy: 'user:ann' }) },
    { claim, run: runWaiting('bmc') },
    { claim: { ...claim, by: 'user:ann' }, run: runWaiting('agent', { requestedBy: 'user:ann' }) },
  ];
  for (const status of others) {
    expect(busyWith(passWith(status))?.holder).toContain(`claimed by ${status.claim.by}`);
  }
});

test('a claim without a reason says so; a pool’s says how the pool gives it up', () => {
  const busy = busyWith(passWith({ claim: { ...claim, reason: '' } }));
  expect(busy).toMatchObject({ holder: 'claimed by pools/p (no reason given)', since: at });
  expect(busy && busyText(busy)).toBe(
    'busy: claimed by pools/p (no reason given) since 2026-01-01T00:00:00Z; ' +
      'take it out of what pools/p selects first, and it gives the host up',
  );
});

test('a hold of the release counts until it ends; holds of other things do not', () => {
  const hold = { by: 'user:ann', reason: 'disks', since: at };
  const scopes = (scope: HoldScope, untilMs?: number) => {
    const until = untilMs === undefined ? {} : { until: timestampFromMs(untilMs) };
    return busyWith(passWith({ holds: [{ ...hold, scope, ...until }] }))?.holder;
  };
  expect(scopes(HoldScope.RELEASE)).toBe('kept from release by user:ann: disks');
  expect(scopes(HoldScope.RELEASE, atMs + 7_200_000)).toContain('user:ann');
  expect(scopes(HoldScope.RELEASE, atMs + 1)).toBeUndefined();
  expect(scopes(HoldScope.WORK)).toBeUndefined();
});

test.each([
  ['agent', false],
  ['bmc', false],
  ['capacity', false],
  ['image', false],
  ['wipeBudget', false],
  ['runner', true],
])('a run that has waited an hour for %s protects its host: %s', (reason, isBusy) => {
  expect(busyWith(passWith({ run: runWaiting(reason) })) !== undefined).toBe(isBusy);
});

test('work under way protects a host, but not work of the deletion itself', () => {
  const running = (kind: RunKind) => runWaiting('', { kind, phase: RunPhase.RUNNING });
  for (const [kind, isBusy] of [
    [RunKind.CLEAN, true],
    [RunKind.PROVISION, true],
    [RunKind.SERVICE, true],
    [RunKind.WORKFLOW, true],
    [RunKind.INSPECT, false],
    [RunKind.POWER, false],
  ] as const) {
    expect(busyWith(passWith({ run: running(kind) })) !== undefined).toBe(isBusy);
  }
  const deletion = { by: 'user:ann', reason: 'sold', at };
  expect(busyWith(passWith({ run: running(RunKind.CLEAN), deletion }))).toBeUndefined();
  const busy = busyWith(passWith({ run: running(RunKind.CLEAN) }));
  expect(busy).toMatchObject({ since: at, instead: 'wait for its end or abort it' });
  expect(busy?.holder).toMatch(/^clean 3 holds the host \(at /);
});
