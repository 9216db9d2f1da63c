import { create } from '@bufbuild/protobuf';
import { agent, asAgentSessionId } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { LiveSession } from '../../host/index.ts';
import { trustedOf } from '../base/trust.ts';
import { rivalHere } from '../hello/elsewhere.ts';

const nowMs = 1_000_000;
const life = 7n;
const current: LiveSession = {
  rackId: 'r1',
  sessionId: asAgentSessionId('s1'),
  journal: create(agent.JournalSchema, { id: 'j1', generation: 3n, life }),
  operationKinds: [],
  bmcReads: [],
  watchesConsoles: false,
  lastMessageMs: () => nowMs,
  openedMs: nowMs,
  awaitsReport: () => false,
  send: () => {},
  end: () => {},
};
const surroundings = {
  clock: { nowMs: () => nowMs, suspendAwareMs: () => 0, after: () => () => {} },
  timing: { idleHeartbeatIntervalMs: 20_000, leaseDurationMs: 15_000 },
};

const rival = (journal: object, replacesSessionId = '', atMs = nowMs): string | undefined => {
  const hello = create(agent.HelloSchema, {
    journal: { id: 'j1', ...journal },
    replacesSessionId: asAgentSessionId(replacesSessionId),
  });
  const clock = { ...surroundings.clock, nowMs: () => atMs };
  return rivalHere(current, hello, { ...surroundings, clock })?.text;
};

test('the agent of a session may open its next one, by the id that only it knows', () => {
  expect(rival({ generation: 3n, life }, 's1')).toBeUndefined();
  for (const guessed of ['', 's2']) {
    expect(rival({ generation: 3n, life }, guessed)).toContain('another agent of rack r1');
  }
});

test('the id alone is not enough for another journal, or an earlier life of it', () => {
  expect(rival({ id: 'j2', generation: 9n, life: 9n }, 's1')).toContain('another agent');
  expect(rival({ generation: 2n, life: 5n }, 's1')).toContain('another agent');
});

test('an agent that has no work and beats seldom keeps its place all the same', () => {
  const other = { id: 'j2', generation: 1n, life: 1n };
  expect(rival(other, '', nowMs + 34_999)).toContain('another agent of rack r1');
  expect(rival(other, '', nowMs + 35_000)).toBeUndefined();
});

test('of the authorities that an agent names only fingerprints are kept', () => {
  const good = 'ab'.repeat(32);
  const many = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(64, '0'));
  const said = { trustedCaSha256: [good, good, 'AB', `${good}0`, ''] };
  expect(trustedOf(said)).toEqual([good]);
  expect(trustedOf({ trustedCaSha256: many })).toHaveLength(8);
});
