/** Whether work that no party can do still protects a host, with real sessions. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HostGoal, HostState, RunKind, RunPhase, RunSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass } from '../pass/pass.ts';
import { defaultTiming } from '../pass/timing.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { bench } from '../testing/bench.ts';
import { connectAgent, proved } from '../testing/plain-agent.ts';
import { rigWith } from '../testing/rig.ts';
import { isAgentGone, isStuck } from './stuck.ts';

const remove = { kind: 'delete', reason: 'sold' } as const;

test('a run at a hold protects the host for as long as its agent was there lately', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await replica.request({ kind: 'clean', steps: [{ step: 'hold', arguments: {} }] });
  await plain.beat(600_000);
  expect(rig.status().run).toMatchObject({ kind: RunKind.CLEAN, waiting: { reason: 'hold' } });
  expect(await replica.request(remove)).toMatchObject({ kind: 'refused' });
  await plain.cut();
  await rig.advance(85_000);
  expect(await replica.request(remove)).toMatchObject({ kind: 'refused' });
  await rig.advance(10_000);
  expect(await replica.request(remove)).toMatchObject({ kind: 'accepted' });
  expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, deletion: { reason: 'sold' } });
});

const nowMs = Date.UTC(2026, 0, 1);
const deadlineMs = defaultTiming.contactDeadlineMs;
const away = { session: undefined } as const;

interface Look {
  /** What the run waits for, and how long it has; undefined: it runs. */
  readonly waits?: readonly [string, number];
  /** How long the session has been silent. */
  readonly silentMs?: number;
  readonly snapshot?: Partial<HostSnapshot>;
}

function lookAt({ waits, silentMs = 0, snapshot = {} }: Look) {
  const host = bench();
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('the bench has an agent');
  const there = { session: { ...session, lastMessageMs: nowMs - silentMs } };
  const pass = beginPass(host.record, { ...host.snapshot, ...there, nowMs, ...snapshot });
  const since = timestampFromMs(nowMs - (waits?.[1] ?? 0));
  const run = create(RunSchema, {
    phase: waits === undefined ? RunPhase.RUNNING : RunPhase.WAITING,
    ...(waits === undefined ? {} : { waiting: { reason: waits[0], since } }),
  });
  return [isAgentGone(pass, run), isStuck(pass, run)];
}

test.each<[string, Look, boolean]>([
  ['that has just been heard', {}, false],
  ['silent for a moment less than the deadline', { silentMs: deadlineMs - 1 }, false],
  ['silent for as long as the deadline', { silentMs: deadlineMs }, true],
  ['without a session, of a run that goes on', { snapshot: away }, false],
  ['waited for, not yet for as long', { waits: ['agent', deadlineMs - 1], snapshot: away }, false],
  ['waited for as long', { waits: ['agent', deadlineMs], snapshot: away }, true],
  [
    'of a run that waits for its runner',
    { waits: ['runner', 2 * deadlineMs], snapshot: away },
    false,
  ],
  [
    'of a run at a hold, gone for as long',
    { waits: ['hold', 0], snapshot: { ...away, agentSeenMs: nowMs - deadlineMs } },
    true,
  ],
  [
    'of a run at a hold, gone since lately',
    { waits: ['hold', 0], snapshot: { ...away, agentSeenMs: nowMs - deadlineMs + 1 } },
    false,
  ],
  [
    'of a run at a hold, with another control plane',
    { waits: ['hold', 0], snapshot: { ...away, sessionElsewhere: true, agentSeenMs: 0 } },
    false,
  ],
  ['of a run at a hold, there', { waits: ['hold', 0], snapshot: { agentSeenMs: 0 } }, false],
  ['never seen, of a run at a hold', { waits: ['hold', 0], snapshot: away }, false],
])('an agent %s is taken for gone, or not', (_name, look, isGone) => {
  expect(lookAt(look)).toEqual([isGone, isGone]);
});

test('a run that waits for its BMC or its slot is stuck although its agent is there', () => {
  for (const reason of ['bmc', 'person', 'capacity', 'image', 'wipeBudget']) {
    expect(lookAt({ waits: [reason, 1] })).toEqual([false, true]);
  }
  for (const reason of ['conflict', 'freeze', 'registry', 'runner']) {
    expect(lookAt({ waits: [reason, 9 * deadlineMs] })).toEqual([false, false]);
  }
});

test('a wait that does not say since when makes nobody stuck', () => {
  const host = bench();
  const away = { session: undefined, agentSeenMs: 0, nowMs };
  const pass = beginPass(host.record, { ...host.snapshot, ...away });
  for (const reason of ['agent', 'hold', 'bmc', 'person']) {
    const run = create(RunSchema, { phase: RunPhase.WAITING, waiting: { reason } });
    expect([isAgentGone(pass, run), isStuck(pass, run)]).toEqual([false, false]);
  }
});

test('a run that goes on is not stuck by what it waited for before', () => {
  const host = bench();
  const away = { session: undefined, agentSeenMs: 0, nowMs };
  const pass = beginPass(host.record, { ...host.snapshot, ...away });
  for (const reason of ['agent', 'hold', 'bmc', 'person']) {
    const waiting = { reason, since: timestampFromMs(0) };
    const run = create(RunSchema, { phase: RunPhase.RUNNING, waiting });
    expect([isAgentGone(pass, run), isStuck(pass, run)]).toEqual([false, false]);
  }
});
