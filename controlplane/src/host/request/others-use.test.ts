/** A retry without effect, and what only an administrator may do to a host in use. */

import { create } from '@bufbuild/protobuf';
import { actors, agent, HostGoal, TransientCause, userActor } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import type { HostRequest, Requester } from '../pass/types.ts';
import { type Bench, bench, failed, statusOf, verified } from '../testing/bench.ts';

const retry = { kind: 'retry' } as const;
const unclaim = { kind: 'unclaim', reason: 'it is in the way' } as const;

function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

function refusalTo(host: Bench, request: HostRequest, by: Requester): string | undefined {
  const outcome = host.try({ kind: 'request', request, by });
  return outcome.kind === 'refused' ? outcome.refusal.message : undefined;
}

const ann = { actor: userActor('ann') };
const bob = { actor: userActor('bob') };

describe('a retry', () => {
  test('a retry of a host that waits for nothing is refused, and says what would help', () => {
    expect(refusalTo(manageable(), retry, ann)).toContain('ask for what you want (verify');
  });

  test('a retry of a run that goes on by itself is refused, and says so', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    expect(refusalTo(host, retry, ann)).toContain('see rackwright host explain h1');
  });

  test('a retry of what failed beside the goal names the work to ask for again', () => {
    const host = manageable();
    host.request({ kind: 'powerOff' });
    host.report(failed('notApplied'));
    const refusal = refusalTo(host, retry, ann);
    expect(refusal).toContain('powerFailed stands until');
    expect(refusal).toContain('ask for the power itself again');
  });

  test('a retry of a host that its pool has given up is accepted, and counted', () => {
    const host = manageable();
    expect(refusalTo(host, { kind: 'retry', poolGaveUp: false }, ann)).toBeDefined();
    expect(host.record.retries).toBe(0n);
    host.request({ kind: 'retry', poolGaveUp: true });
    expect(host.record.retries).toBe(1n);
  });

  test('is accepted after a failure, and while something is tried again', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const value = create(agent.TransientErrorSchema, {
      cause: TransientCause.UNREACHABLE,
      message: 'silent',
    });
    host.report({ case: 'transientError', value });
    expect(refusalTo(host, retry, ann)).toBeUndefined();
    host.report(failed('authentication'));
    expect(statusOf(host).backoff).toBeDefined();
    expect(refusalTo(host, retry, ann)).toBeUndefined();
  });
});

describe('a host that somebody claims', () => {
  function claimed(): Bench {
    const host = manageable();
    host.apply({ kind: 'request', request: { kind: 'claim', reason: 'mine' }, by: ann });
    return host;
  }

  test('is given up by who claims it, or by an administrator', () => {
    expect(refusalTo(claimed(), unclaim, bob)).toContain('claimed by user:ann');
    expect(refusalTo(claimed(), unclaim, ann)).toBeUndefined();
    expect(refusalTo(claimed(), unclaim, { ...bob, mayEndOthersUse: true })).toBeUndefined();
  });

  test('is neither switched on nor booted into the runner by others', () => {
    const on = { kind: 'powerOn', bootOldDiskReason: 'a look' } as const;
    for (const request of [on, { kind: 'inspect' } as const]) {
      expect(refusalTo(claimed(), request, bob)).toContain('claimed by user:ann');
      expect(refusalTo(claimed(), request, ann)).toBeUndefined();
      // The spec's goal was set by somebody who may set it.
      expect(refusalTo(claimed(), request, { actor: actors.policy })).toBeUndefined();
    }
  });

  test('keeps its user’s run, unless an administrator ends that', () => {
    const host = claimed();
    host.apply({ kind: 'request', request: { kind: 'inspect' }, by: ann });
    const abort = { kind: 'abort', reason: 'in the way' } as const;
    expect(refusalTo(host, abort, bob)).toContain('claimed by user:ann');
    expect(refusalTo(host, abort, ann)).toBeUndefined();
    expect(refusalTo(host, abort, { ...bob, mayEndOthersUse: true })).toBeUndefined();
  });

  test.each(['powerOff', 'powerReset'] as const)('gets no %s from others', (kind) => {
    const request =
      kind === 'powerOff' ? ({ kind } as const) : ({ kind, bootOldDiskReason: 'a look' } as const);
    expect(refusalTo(claimed(), request, bob)).toContain('claimed by user:ann');
    expect(refusalTo(claimed(), request, ann)).toBeUndefined();
  });
});
