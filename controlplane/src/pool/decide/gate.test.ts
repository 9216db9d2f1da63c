import { create, toBinary } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type PoolSpec,
  RolloutSlotState,
  StepExitSchema,
  TemplatePolicySchema,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { VALUE_BYTES_MAX } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { CallResult } from '../../host/index.ts';
import { digestInImage } from '../policy/image-name.ts';
import { explainPool } from '../show/explain.ts';
import { shownHosts, shownPool } from '../show/view.ts';
import { approve as approveSlots } from './approval.ts';
import { image, Rollout } from './rollout.fixture.ts';

const url = 'https://hooks.example/rack/gate?token=1';
const policy = create(TemplatePolicySchema, { webhookUrls: ['https://hooks.example/rack/'] });

function answered(body: string, code = 200): CallResult {
  const exit = create(StepExitSchema, { code, lastOutput: body });
  return { kind: 'complete', output: { exit, tail: new TextEncoder().encode(body) } };
}

/** Three hosts in service on A, with B pushed: the first one waits at the gate. */
function atGate(gate: Partial<NonNullable<NonNullable<PoolSpec['rollout']>['gate']>> = {}) {
  const spec = { rollout: { gate: { webhookUrl: url, ...gate } } };
  const rollout = new Rollout(3, spec);
  rollout.gate = { replica: 'one', policy, answers: new Map() };
  rollout.push('A').finish();
  rollout.nowMs += 1_000;
  return rollout.push('B');
}

/** The webhook answers the present question. */
function answer(rollout: Rollout, result: CallResult): Rollout {
  const [question] = rollout.questions;
  if (question === undefined || rollout.gate === undefined) throw new Error('nothing is asked');
  const { gate } = rollout;
  rollout.gate = { ...gate, answers: new Map([[question.id, result]]) };
  rollout.reconcileOnce();
  rollout.gate = gate;
  return rollout.reconcile();
}

test('a host in service is taken out once the webhook answers 2xx with proceed', () => {
  const rollout = atGate();
  const [slot] = rollout.slots;
  expect(slot?.state).toBe(RolloutSlotState.GATE);
  const [question, ...more] = rollout.questions;
  expect(more).toEqual([]);
  expect(question?.id).toBe(`pool-uid/${slot?.number}/1`);
  expect(JSON.parse(question?.arguments['body'] ?? '')).toEqual({
    ...{ pool: 'pools/p', host: slot?.host, rack: slot?.rack, run: 'reimage' },
    ...{ from: image('A'), to: image('B'), version: 'v-B', order: Number(slot?.number) },
  });
  answer(rollout, answered('{"proceed": true}'));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
  expect(rollout.record.gateCalls).toEqual([]);
});

test.each([
  ['an answer without proceed', answered('{"proceed": false}'), 'not yet: it answered 200'],
  ['an answer that is no JSON', answered('yes'), 'not yet: it answered 200, yes'],
  ['an error', { kind: 'failed', type: 'exitCode', message: 'hooks answered 403' }, '403'],
] as const)('%s means not yet, and asks again after a pause', (_, said, reason) => {
  const rollout = answer(atGate(), said);
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.GATE);
  expect(rollout.slots[0]?.message).toContain(reason);
  expect(rollout.questions).toEqual([]);
  const causes = explainPool(rollout.record, rollout.hosts, new Map(), rollout.nowMs);
  expect(causes.blocker).toBe('the webhook at https://hooks.example');
  const told = causes.causes.map(({ text }) => text).join('; ');
  expect(told).toContain(reason);
  expect(told).not.toContain('token');
  rollout.nowMs = rollout.nextPassMs ?? 0;
  rollout.reconcile();
  expect(rollout.questions[0]?.id).toBe(`pool-uid/${rollout.slots[0]?.number}/2`);
  answer(rollout, answered('{"proceed": true}'));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
});

test('a receiver sees the same key again when nobody can tell of its call', () => {
  const rollout = answer(atGate(), { kind: 'transientError', message: 'no answer in 60 s' });
  expect(rollout.slots[0]?.message).toContain('no answer in 60 s');
  rollout.nowMs = rollout.nextPassMs ?? 0;
  rollout.reconcile();
  expect(rollout.questions[0]?.id).toBe(`pool-uid/${rollout.slots[0]?.number}/1`);
});

test('a replica does not ask while another does, and takes over from one that is gone', () => {
  const rollout = atGate();
  const [asked] = rollout.questions;
  rollout.gate = { replica: 'two', policy, answers: new Map() };
  rollout.reconcile();
  expect(rollout.questions).toEqual([]);
  rollout.nowMs += 121_000;
  rollout.reconcile();
  expect(rollout.questions.map(({ id }) => id)).toEqual([asked?.id]);
  // The first replica again: the question no longer belongs to it.
  rollout.gate = { replica: 'one', policy, answers: new Map() };
  rollout.reconcile();
  expect(rollout.questions).toEqual([]);
});

test('a yes that comes while the pool may not begin is asked for again', () => {
  const rollout = atGate();
  setPaused(rollout, true);
  answer(rollout, answered('{"proceed": true}'));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.GATE);
  expect(rollout.questions).toEqual([]);
  setPaused(rollout, false);
  rollout.nowMs += 60_000;
  rollout.reconcile();
  expect(rollout.questions[0]?.id).toBe(`pool-uid/${rollout.slots[0]?.number}/2`);
});

const otherUrl = 'https://hooks.example/rack/other';

function setGate(rollout: Rollout, change: { webhookUrl?: string; approval?: boolean }): void {
  Object.assign(rollout.spec.rollout?.gate ?? {}, change);
}

test('a new URL is asked another question; a yes of the first lets nobody through', () => {
  const rollout = atGate();
  const [asked] = rollout.questions;
  setGate(rollout, { webhookUrl: otherUrl });
  answer(rollout, answered('{"proceed": true}'));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.GATE);
  const [question] = rollout.questions;
  expect(question?.arguments['url']).toBe(otherUrl);
  expect(question?.id).not.toBe(asked?.id);
});

test('a question that stood when the URL was changed is not put to the new one', () => {
  const rollout = atGate();
  // A person's approval is required, too: until then no question is made for the new URL.
  setGate(rollout, { webhookUrl: otherUrl, approval: true });
  expect(rollout.reconcile().questions).toEqual([]);
});

test('a webhook that the fleet does not allow is not called; the gate says how to allow it', () => {
  const rollout = new Rollout(1, { rollout: { gate: { webhookUrl: url } } });
  rollout.gate = { replica: 'one', policy: undefined, answers: new Map() };
  rollout.push('A').finish().push('B');
  expect(rollout.questions).toEqual([]);
  expect(rollout.slots[0]?.message).toContain('the fleet allows no webhook at https://hooks');
  expect(rollout.slots[0]?.message).not.toContain('token');
  rollout.gate = { replica: 'one', policy, answers: new Map() };
  rollout.nowMs = rollout.nextPassMs ?? 0;
  expect(rollout.reconcile().questions).toHaveLength(1);
});

test('the webhook is asked once the person has approved, where the gate has both', () => {
  const rollout = atGate({ approval: true });
  expect(rollout.questions).toEqual([]);
  expect(rollout.slots[0]?.message).toBe('waits for an approval');
  const [slot] = rollout.slots;
  if (slot !== undefined) slot.approvedBy = 'user:ann';
  rollout.reconcile();
  expect(rollout.questions).toHaveLength(1);
  expect(rollout.condition('UpToDate')).toBe('WaitingForWebhook');
  answer(rollout, answered('{"proceed": true}'));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
});

test('a host that is not let through in time gives the slot back, with the last words', () => {
  const rollout = answer(atGate(), answered('{"proceed": false}'));
  const { host } = rollout.slots[0] ?? {};
  rollout.nowMs += 25 * 3_600_000;
  rollout.reconcile();
  const failure = rollout.record.failures.find((each) => each.host === host);
  expect(failure?.message).toContain('not let through in time: it waits for https://hooks.example');
  expect(failure?.counted).toBe(false);
});

test('without the gate the hosts that wait at it go', () => {
  const rollout = atGate();
  const { rollout: wanted } = rollout.spec;
  if (wanted !== undefined) delete wanted.gate;
  rollout.reconcile();
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
});

/** The condition's text, by the hosts at the gate and the others. */
function others({ hosts, slots }: Rollout) {
  return hosts.filter(({ uid }) => !slots.some(({ hostUid }) => hostUid === uid));
}

function approve(rollout: Rollout): Rollout {
  for (const slot of rollout.slots) slot.approvedBy = 'user:ann';
  return rollout.reconcile();
}

/** A host that runs B and is healthy. */
function oneOnB(rollout: Rollout): Rollout {
  approve(rollout);
  return rollout.end(rollout.out);
}

test.each(['approval', 'webhook'] as const)(
  'a host stays at the gate while others that went out keep it: %s',
  (by) => {
    const isApproval = by === 'approval';
    const rollout = new Rollout(3, {
      rollout: { gate: isApproval ? { approval: true } : { webhookUrl: url } },
    });
    rollout.gate = { replica: 'one', policy, answers: new Map() };
    rollout.push('A').push('B');
    if (isApproval) oneOnB(rollout);
    else answer(rollout, answered('{"proceed": true}')).end(rollout.out);
    const [slot] = rollout.slots;
    expect(slot?.state).toBe(RolloutSlotState.GATE);
    // Already on B, so that no slot would heal it.
    const out = rollout.hosts.find(({ image: has }) => has === image('B'));
    const index = rollout.hosts.findIndex((host) => host === out) + 1;
    rollout.set(index, { illness: { kind: 'fault', text: 'powerMismatch: it is off' } });
    rollout.reconcile();
    if (isApproval) approve(rollout);
    else answer(rollout, answered('{"proceed": true}'));
    const text = `waits for ${out?.name}, which is out`;
    expect(rollout.slots[0]).toMatchObject({ state: RolloutSlotState.GATE, message: text });
    expect(rollout.questions).toEqual([]);
    const told = explainPool(rollout.record, rollout.hosts, new Map(), rollout.nowMs);
    expect(told.blocker).toBe(`${out?.name}, which is out`);
    rollout.set(index, { illness: undefined });
    rollout.nowMs += 60_000;
    rollout.reconcile();
    if (!isApproval) answer(rollout, answered('{"proceed": true}'));
    expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
  },
);

test('a host that is ill, and that a slot may heal, gets the slot of one that may not go', () => {
  const rollout = oneOnB(
    new Rollout(4, { rollout: { gate: { approval: true } } }).push('A').push('B'),
  );
  const [slot] = rollout.slots;
  const ill = others(rollout).find(({ image: has }) => has === image('A'));
  rollout.set(rollout.hosts.findIndex((host) => host === ill) + 1, {
    illness: { kind: 'off', text: 'off' },
  });
  rollout.reconcile();
  expect(rollout.out).toBe(ill?.name.replace('hosts/', ''));
  expect(rollout.slots[0]?.state).toBe(RolloutSlotState.RUNNING);
  rollout.end(rollout.out);
  expect(rollout.slots[0]).toMatchObject({ state: RolloutSlotState.GATE, approvedBy: '' });
  expect(slot?.approvedBy).toBe('');
  approve(rollout).end(rollout.out);
  approve(rollout).end(rollout.out);
  expect(rollout.countOn('B')).toBe(4);
});

test('a host that may be out of service gets the slot of one that waits for it', () => {
  const rollout = oneOnB(
    new Rollout(3, { rollout: { gate: { approval: true } } }).push('A').push('B'),
  );
  const unseen = others(rollout).find(({ image: has }) => has === image('A'));
  const index = rollout.hosts.findIndex((host) => host === unseen) + 1;
  rollout.set(index, { service: 'unseen' });
  rollout.reconcile();
  expect(rollout.out).toBe(unseen?.name.replace('hosts/', ''));
  rollout.set(index, { service: 'in' });
  approve(rollout).end(rollout.out);
  approve(rollout).end(rollout.out);
  expect(rollout.countOn('B')).toBe(3);
});

test('two hosts let through at once keep to what may be out, and to the cap of a rack', () => {
  for (const limits of [{ maxUnavailable: 2 }, { maxUnavailable: 3, perRack: 1 }]) {
    const { maxUnavailable: value, perRack: maxUnavailablePerRack } = limits;
    const rollout = new Rollout(8, {
      rollout: {
        gate: { approval: true },
        maxUnavailable: { amount: { case: 'count', value } },
        ...(maxUnavailablePerRack === undefined ? {} : { maxUnavailablePerRack }),
      },
    });
    oneOnB(rollout.push('A').push('B'));
    expect(rollout.slots).toHaveLength(2);
    const [first] = rollout.slots;
    const ill = rollout.hosts.find(({ image: has }) => has === image('B'));
    const index = rollout.hosts.findIndex((host) => host === ill) + 1;
    rollout.set(index, { illness: { kind: 'off', text: 'off' }, rack: first?.rack ?? '' });
    approve(rollout);
    const running = rollout.slots.filter(({ state }) => state === RolloutSlotState.RUNNING);
    const gone = running.filter(({ rack }) => rack === first?.rack);
    if (maxUnavailablePerRack === undefined) expect(running).toHaveLength(1);
    else expect([running.length, gone.length]).toEqual([1, 0]);
  }
});

/** A digest at the end of a URL, as in names of HTTP images. */
const byUrl = `http://images.example/os.qcow2#sha256=${'65'.repeat(32)}`;

function explained({ record, hosts, nowMs }: Rollout) {
  return explainPool(record, hosts, new Map(), nowMs);
}

test('the advised approval at a gate is accepted, for an image by URL and for a pin', () => {
  const gate = { approval: true };
  const pins = { 'hosts/h1': byUrl };
  const rollout = new Rollout(3, {
    rollout: { gate, maxUnavailable: { amount: { case: 'count', value: 3 } } },
  });
  rollout.push('A');
  rollout.spec.pins = pins;
  rollout.push('B');
  const waiting = new Set(rollout.slots.map(({ image: wanted }) => wanted));
  expect(waiting).toEqual(new Set([byUrl, image('B')]));
  const advised = explained(rollout).unblock.flatMap(
    (text) => /pool approve p (\S+)/.exec(text)?.[1] ?? [],
  );
  expect(advised).toHaveLength(2);
  for (const digest of advised) {
    expect(
      approveSlots(rollout.record, { hosts: [], digest, by: userActor('ann') }),
    ).toBeUndefined();
  }
  expect(rollout.slots.map(({ approvedBy }) => approvedBy)).toEqual(
    rollout.slots.map(() => 'user:ann'),
  );
});

test('an approval of another digest, or where only a webhook is asked, is refused', () => {
  const rollout = atGate({ approval: true });
  const [slot] = rollout.slots;
  const by = userActor('ann');
  const wrong = { hosts: [slot?.host ?? ''], digest: digestInImage(image('C')), by };
  for (const hosts of [[], wrong.hosts]) {
    expect(approveSlots(rollout.record, { ...wrong, hosts })).toContain('waits for an approval of');
  }
  expect(slot?.approvedBy).toBe('');
  const asked = { hosts: [], digest: digestInImage(image('B')), by };
  expect(approveSlots(atGate().record, asked)).toContain('its gate asks nobody for one');
});

const weekly = { cron: '0 2 * * 6', duration: durationFromMs(2 * 3_600_000), timeZone: '' };

function setPaused({ spec }: Rollout, paused: boolean): void {
  if (spec.rollout !== undefined) spec.rollout.paused = paused;
}

/** Two on A, the first of them at the gate for B since a window opened. */
function inWindow(deadlineHours: number): Rollout {
  const gate = { approval: true, deadline: durationFromMs(deadlineHours * 3_600_000) };
  const rollout = new Rollout(2, { rollout: { gate, windows: [weekly] } }).push('A');
  rollout.nowMs = Date.UTC(2026, 10, 28, 2);
  rollout.push('B');
  expect(rollout.slots).toHaveLength(1);
  return rollout;
}

test('a host approved outside the window waits for the window, and no webhook is named', () => {
  const rollout = inWindow(24);
  rollout.nowMs += 7 * 3_600_000;
  approve(rollout);
  expect(rollout.slots[0]).toMatchObject({ message: 'let through, and waits for a window' });
  expect(rollout.condition('UpToDate')).toBe('WaitingForWindow');
  const told = explained(rollout);
  expect(told.blocker).toBe('its window');
  expect(told.unblock.join()).not.toContain('--gate none');
  expect(told.nextAttemptTime).toEqual(timestampFromMs(Date.UTC(2026, 11, 5, 2)));
  // The next window may be further away than the deadline: the approval remains.
  rollout.nowMs = Date.UTC(2026, 11, 5, 2);
  expect(rollout.reconcile().slots[0]?.state).toBe(RolloutSlotState.RUNNING);
});

test('approved and then paused for longer than the deadline, it is asked for again', () => {
  const rollout = inWindow(1);
  setPaused(rollout, true);
  approve(rollout);
  expect(rollout.slots).toHaveLength(1);
  expect(explained(rollout)).toMatchObject({ blocker: 'a person to resume it' });
  expect(explained(rollout).nextAttemptTime).toBeUndefined();
  rollout.nowMs += 3_600_000;
  expect(rollout.reconcile().slots).toEqual([]);
  expect(rollout.record.failures[0]).toMatchObject({ counted: false });
  rollout.nowMs = Date.UTC(2026, 11, 5, 2);
  setPaused(rollout, false);
  const [slot] = rollout.reconcile().slots;
  expect(slot).toMatchObject({ state: RolloutSlotState.GATE, approvedBy: '' });
});

test('a host that waits for another one beside a shut window does not wait for ever', () => {
  const gate = { approval: true, deadline: durationFromMs(3_600_000) };
  const rollout = new Rollout(3, { rollout: { gate, windows: [weekly] } }).push('A');
  rollout.nowMs = Date.UTC(2026, 10, 28, 2);
  oneOnB(rollout.push('B'));
  const [slot] = rollout.slots;
  rollout.nowMs = Date.UTC(2026, 10, 28, 4);
  approve(rollout);
  // For the window alone it would be.
  expect(rollout.slots[0]).toMatchObject({ message: 'let through, and waits for a window' });
  const out = rollout.hosts.findIndex(({ image: has }) => has === image('B'));
  rollout.set(out + 1, { illness: { kind: 'fault', text: 'powerMismatch: it is off' } });
  const waits = `waits for ${rollout.hosts[out]?.name}, which is out`;
  expect(rollout.reconcile().slots).toEqual([]);
  const failure = rollout.record.failures.find(({ host }) => host === slot?.host);
  expect(failure).toMatchObject({ message: expect.stringContaining(waits), counted: false });
});

test('a host that waits at the gate is in service, and counts as that', () => {
  const rollout = atGate({ approval: true });
  const view = { ...rollout, record: rollout.record, ledger: [], nowMs: rollout.nowMs };
  expect(shownPool(view).status?.unavailableCount).toBe(0);
  const host = rollout.slots[0]?.host ?? '';
  const shown = () => shownHosts(view, []).find((each) => each.host === host);
  expect(shown()).toMatchObject({ state: 'atGate', healthy: true });
  expect(explained(rollout).causes[0]?.text).toContain(`${host} is at the gate for`);
});

test('a hundred hosts that wait for a long URL stand in one record', () => {
  const webhookUrl = `https://hooks.example/rack/${'g'.repeat(1_900)}`;
  const maxUnavailable = { amount: { case: 'count' as const, value: 100 } };
  const rollout = new Rollout(300, { rollout: { maxUnavailable, gate: { webhookUrl } } });
  rollout.hosts = rollout.hosts.map((host) => {
    return { ...host, name: `${host.name.padEnd('hosts/'.length + 60, 'x')}${host.uid.slice(1)}` };
  });
  rollout.gate = { replica: 'one', policy, answers: new Map() };
  rollout.push('A').push('B');
  answer(rollout, answered('{"proceed": true}')).end(rollout.out);
  expect(rollout.questions).toHaveLength(100);
  expect(rollout.questions[99]?.arguments['url']).toBe(webhookUrl);
  const bytes = toBinary(wire.PoolRecordSchema, rollout.record).byteLength;
  expect(bytes).toBeLessThan(VALUE_BYTES_MAX);
});
