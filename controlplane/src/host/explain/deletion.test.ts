import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, HoldSchema, HoldScope, TransientCause } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, failed } from '../testing/bench.ts';
import {
  agentLeaves,
  callMs,
  force,
  manageable,
  normal,
  pass,
  provisioned,
  runKind,
  statusOf,
  switchingOff,
} from '../testing/deleting.ts';
import { explainHost } from './explain.ts';

const explained = (host: Bench) =>
  explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
const forceLine = expect.stringContaining('rackwright host delete h1 --force --reason WHY');

test('explain names what a deletion waits for, and a remedy without agent or BMC', () => {
  const away = manageable();
  away.request(normal);
  agentLeaves(away);
  away.apply({ kind: 'tick' });
  expect(explained(away)).toMatchObject({
    headline: 'deleting, waiting for agent: delete 2, step host.forget (1 of 1)',
    blocker: 'the agent of the rack',
    unblock: expect.arrayContaining([forceLine]),
  });

  const failing = provisioned();
  failing.request(normal);
  failing.report(failed('notApplied', 'the BMC did nothing'));
  expect(explained(failing).headline).toContain('the deletion is tried again after a pause');
  expect(explained(failing).unblock).toEqual(expect.arrayContaining([forceLine]));

  const silent = switchingOff(normal);
  const value = create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  });
  silent.report({ case: 'transientError', value });
  expect(explained(silent).unblock).toEqual([
    expect.stringContaining('has power and network'),
    'or at once: rackwright host retry h1',
    forceLine,
  ]);

  const poor = provisioned();
  poor.snapshot = { ...poor.snapshot, credentialVersion: undefined };
  poor.request(normal);
  expect(explained(poor).headline).toContain('credential does not exist');
  expect(explained(poor).unblock).toEqual([
    expect.stringContaining('rackwright credential create c1'),
    forceLine,
  ]);
});

test('explain names what delays a deletion, and how long a forced one still takes', () => {
  const kept = provisioned();
  const reason = 'evidence for the auditors';
  kept.request(normal);
  kept.report(failed('notApplied'));
  statusOf(kept).holds.push(
    create(HoldSchema, { scope: HoldScope.RELEASE, by: 'user:ann', reason }),
  );
  pass(kept, 3_600_000);
  expect(runKind(kept)).toBeUndefined();
  expect(explained(kept)).toMatchObject({
    headline: 'pending delete: held by user:ann: it is neither released nor erased',
    unblock: [
      expect.stringContaining('release-hold h1'),
      expect.stringContaining('cancel-delete h1'),
    ],
  });

  const forced = switchingOff(force);
  expect(explained(forced).deadline).toEqual(timestampFromMs(forced.nowMs + callMs));
  expect(explained(forced).unblock).toEqual(['nothing: it goes on by itself after that']);
});
