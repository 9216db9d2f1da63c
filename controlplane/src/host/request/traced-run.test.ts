/** The work of a call belongs to its trace: the run, and every operation of it. */
import { RunKind, userActor } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { availableHost, statusOf } from '../testing/bench.ts';

const traceParent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

test('a run that a call asked for, and its operations, carry the call’s trace', () => {
  const host = availableHost();
  host.apply({
    kind: 'request',
    request: { kind: 'inspect' },
    by: { actor: userActor('a'), traceParent },
  });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT, traceParent });
  expect(host.record.operation?.operation).toMatchObject({ traceParent });
});

test('a call that starts nothing changes no trace, and one without a trace starts none', () => {
  const host = availableHost();
  const before = statusOf(host).run?.number;
  const claim = { kind: 'claim', reason: 'mine' } as const;
  host.apply({ kind: 'request', request: claim, by: { actor: userActor('a'), traceParent } });
  expect(statusOf(host).run).toMatchObject({ number: before, traceParent: '' });
  const unclaim = { kind: 'unclaim', reason: 'done' } as const;
  host.apply({ kind: 'request', request: unclaim, by: { actor: userActor('a') } });
  host.apply({ kind: 'request', request: { kind: 'inspect' }, by: { actor: userActor('a') } });
  expect(statusOf(host).run?.traceParent).toBe('');
});
