/** Hosts with states or work that only a newer version knows. */
import { clone, equals } from '@bufbuild/protobuf';
import {
  HostState,
  type Run,
  type RunKind,
  RunPhase,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { beginPass } from '../pass/pass.ts';
import { bench } from '../testing/bench.ts';
import {
  abandonedIn,
  force,
  manageable,
  normal,
  refusalOf,
  statusOf,
} from '../testing/deleting.ts';
import { foldNewer, unknownValueOf } from './newer.ts';

test('a host of a newer version is left alone and shown, and force removes it', () => {
  const host = manageable();
  const future = 77 as HostState;
  statusOf(host).state = future;
  const before = clone(store.HostRecordSchema, host.record);
  for (const event of [{ kind: 'tick' }, { kind: 'forgotten' }] as const) host.apply(event);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  for (const request of [normal, { kind: 'verify' }] as const) {
    expect(refusalOf(host, request)).toContain('state 77 is not known to this version');
  }
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.headline).toContain('left alone: its state 77');
  host.request(force);
  const left = abandonedIn(host.apply({ kind: 'forgotten' }));
  expect(host.removed).toBe(true);
  expect(left?.leftBehind).toEqual([expect.stringContaining('state 77')]);

  const running = bench();
  running.apply({ kind: 'tick' });
  const { run } = statusOf(running);
  if (run !== undefined) run.kind = 99 as RunKind;
  expect(refusalOf(running, { kind: 'abort', reason: '' })).toContain('run kind 99');
  running.request(force);
  running.apply({ kind: 'forgotten' });
  expect(running.removed).toBe(true);
});

test('newer values in a run are reported, but not those in a run that has ended', () => {
  const found = (change: (run: Run) => void) => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const { run } = statusOf(host);
    if (run === undefined) throw new Error('it is being verified');
    change(run);
    return unknownValueOf(statusOf(host));
  };
  expect(found(() => {})).toBeUndefined();
  expect(found((run) => Object.assign(run, { phase: 88 }))).toBe('run phase 88');
  expect(found((run) => Object.assign(run, { phase: RunPhase.UNSPECIFIED }))).toBe('run phase 0');
  const newStep = (run: Run) => Object.assign(run.steps[0] ?? {}, { state: 66 });
  expect(found(newStep)).toBe('step state 66 of bmc.verifyAccess');
  const over = (run: Run) => Object.assign(run, { kind: 99, phase: RunPhase.ENDED });
  expect(found(over)).toBeUndefined();
});

test('the work of a newer version is given up with its operation, and the host is external', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  Object.assign(statusOf(host).run ?? {}, { kind: 99 });
  expect(host.record.operation).toBeDefined();
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const by = { actor: userActor('ann') };
  expect(foldNewer(pass, { kind: 'request', request: force, by })).toBeUndefined();
  const { status, record } = pass;
  expect([status.state, status.run, record.operation]).toEqual([
    HostState.EXTERNAL,
    undefined,
    undefined,
  ]);
});
