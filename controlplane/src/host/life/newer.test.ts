import { clone, equals } from '@bufbuild/protobuf';
import { type HostState, type RunKind, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { bench } from '../testing/bench.ts';
import {
  abandonedIn,
  force,
  manageable,
  normal,
  refusalOf,
  statusOf,
} from '../testing/deleting.ts';

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
  const told = explainHost(host.record, { ...host.context, nowMs: host.nowMs });
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
