/** What a held or incomplete host does not do; and how it is released. */
import {
  agent,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { reservedValues } from '../fleet/reservations.ts';
import type { HostRequest } from '../pass/types.ts';
import { complete, connectAgent, proved } from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';

const manageable = { goal: HostGoal.MANAGEABLE };
const { REFUSED, STALE } = agent.ReportAnswer_Verdict;
const { BEGUN } = agent.JournalledOperation_State;
const unknown = { operationId: 'u1/99/0/1', hostUid: 'u1', state: BEGUN };
const release = (hold: string) => ({ kind: 'releaseHold', hold, reason: 'seen to' }) as const;
const holds = (rig: Rig) => rig.status().holds.map(({ reason }) => reason);

async function started(spec = {}) {
  const rig = rigWith(spec);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

async function proven() {
  const around = await started(manageable);
  await around.plain.report(proved());
  expect(around.rig.status().state).toBe(HostState.MANAGEABLE);
  return around;
}

/** The agent reconnects with work that was not ordered from here. */
async function comesWithUnknownWork(rig: Rig, replica: Replica) {
  const journal = { id: 'j1', generation: 2n };
  return connectAgent(rig, replica, { journal, operations: [unknown] });
}

test('a hold ends within ten years, so that its end has a text form', async () => {
  const { rig, replica } = await started(manageable);
  const until = (untilMs: number) =>
    replica.request({ kind: 'hold', scope: HoldScope.WORK, reason: 'r', untilMs });
  const yearMs = 365 * 86_400_000;
  const refused = await until(Date.UTC(10_000, 0));
  expect(refused.kind).toBe('refused');
  expect(JSON.stringify(refused)).toContain('ten years');
  expect(holds(rig)).toEqual([]);
  expect((await until(rig.clock.nowMs() + 9 * yearMs)).kind).toBe('accepted');
  expect(holds(rig)).toEqual(['r']);
});

describe('a result of a kind that nobody here knows', () => {
  async function unsupported() {
    const around = await started();
    await around.plain.report({ case: undefined });
    return around;
  }

  test('is refused, ends the attempt and holds the host', async () => {
    const { rig, plain } = await unsupported();
    expect(plain.of('reportAnswer').at(-1)).toMatchObject({ verdict: REFUSED });
    expect(rig.status().run?.outcome).toBe(RunOutcome.FAILED);
    expect(holds(rig)).toHaveLength(1);
    expect(rig.record().operation).toBeUndefined();
  });

  test('is not asked for again, in this session or in the next', async () => {
    const { rig, replica, plain } = await unsupported();
    await plain.beat(3_600_000);
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    await plain.cut();
    const next = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
    await next.beat(3_600_000);
    expect(next.ids()).toEqual([]);
    await next.report(proved(), { id: 'u1/1/0/1', hostUid: 'u1' });
    expect(next.of('reportAnswer').at(-1)).toMatchObject({ verdict: STALE });
    expect(rig.status().state).toBe(HostState.NEW);
  });

  test('is over once a person has released the hold', async () => {
    const { rig, replica, plain } = await unsupported();
    const [reason = ''] = holds(rig);
    expect(await replica.request(release('something else'))).toMatchObject({ kind: 'refused' });
    expect(holds(rig)).toEqual([reason]);
    expect(await replica.request(release(reason))).toMatchObject({ kind: 'accepted' });
    expect(holds(rig)).toEqual([]);
    expect(plain.ids()).toEqual(['u1/1/0/1', 'u1/2/0/1']);
    await plain.report(proved());
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });
});

describe('work that was never ordered from here', () => {
  test('is cancelled and holds the host for as long as the agent lists it', async () => {
    const { rig, replica, plain } = await started();
    await plain.report(proved());
    const next = await comesWithUnknownWork(rig, replica);
    const { CANCEL } = agent.Directive_Action;
    expect(next.of('welcome')[0]?.directives.map(({ action }) => action)).toEqual([CANCEL]);
    expect(holds(rig)).toEqual([expect.stringContaining('u1/99/0/1')]);
    await next.cut();
    const again = await comesWithUnknownWork(rig, replica);
    expect(holds(rig)).toHaveLength(1);
    await again.cut();
    await connectAgent(rig, replica, { journal: { id: 'j1', generation: 3n } });
    expect(holds(rig)).toEqual([]);
  });

  test('work that is gone lets the host go on towards its goal', async () => {
    const { rig, replica } = await started();
    const next = await comesWithUnknownWork(rig, replica);
    await next.report(proved(), { id: 'u1/1/0/1', hostUid: 'u1' });
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE });
    expect(rig.status().run).toMatchObject({ kind: RunKind.VERIFY, phase: RunPhase.ENDED });
    await next.cut();
    const free = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 3n } });
    expect(free.ids()).toEqual(['u1/2/0/1']);
  });
});

const ordering: HostRequest[] = [
  { kind: 'verify' },
  { kind: 'inspect' },
  { kind: 'clean', steps: [] },
  { kind: 'powerOn', bootOldDiskReason: 'to look at it' },
  { kind: 'powerOff' },
  { kind: 'powerReset', bootOldDiskReason: 'to look at it' },
];

describe.each(ordering)('a request to $kind', (request) => {
  test('is accepted on a manageable host that lacks nothing', async () => {
    const { replica, plain } = await proven();
    expect(await replica.request(request)).toMatchObject({ kind: 'accepted' });
    expect(plain.ids()).toHaveLength(2);
  });

  test('is refused on a held host, and nothing is written', async () => {
    const { rig, replica } = await proven();
    await comesWithUnknownWork(rig, replica);
    await expectRefused(rig, replica, request, 'u1/99/0/1');
  });

  test('is refused on a host whose address another host has', async () => {
    const { rig, replica } = await proven();
    rig.addHost(2, { bootMacs: rig.record().host?.spec?.bootMacs ?? [] });
    await rig.advance(1_000);
    await expectRefused(rig, replica, request, 'another host');
  });

  test('is refused on a host without its credential', async () => {
    const { rig, replica } = await proven();
    rig.remove(storeKey('credentials', 'c1'));
    await expectRefused(rig, replica, request, 'credentials/c1');
  });
});

test('a host takes an address again that nobody holds any more', async () => {
  const { rig, replica } = await proven();
  const spec = rig.record().host?.spec;
  const [first] = spec === undefined ? [] : reservedValues(spec);
  rig.remove(first?.key ?? '');
  expect(await replica.request({ kind: 'inspect' })).toMatchObject({ kind: 'accepted' });
  const held = rig.read(first?.key ?? '', wire.ReservationSchema);
  expect(held).toMatchObject({ holder: 'hosts/h1', holderUid: 'u1' });
});

async function expectRefused(rig: Rig, replica: Replica, request: HostRequest, naming: string) {
  const revision = rig.lastRevision();
  expect(await replica.request(request)).toMatchObject({
    kind: 'refused',
    code: 'failedPrecondition',
    message: expect.stringContaining(naming),
  });
  expect(rig.lastRevision()).toBe(revision);
}

describe('a power request that waits for a verify', () => {
  test('is carried out after it', async () => {
    const { rig, replica, plain } = await proven();
    await replica.request({ kind: 'verify' });
    await replica.request({ kind: 'powerOff' });
    expect(plain.ids()).toHaveLength(2);
    await plain.report(proved());
    expect(rig.status().run?.kind).toBe(RunKind.POWER);
    await plain.report(complete());
    expect(rig.status().run?.outcome).toBe(RunOutcome.SUCCEEDED);
  });

  test('waits on while a hold has come, and goes on when it is released', async () => {
    const { rig, replica } = await proven();
    await replica.request({ kind: 'verify' });
    await replica.request({ kind: 'powerOff' });
    const next = await comesWithUnknownWork(rig, replica);
    await next.report(proved(), { id: 'u1/2/0/1', hostUid: 'u1' });
    expect(rig.status().run).toMatchObject({ kind: RunKind.VERIFY, phase: RunPhase.ENDED });
    await replica.request(release(''));
    expect(rig.status().run?.kind).toBe(RunKind.POWER);
  });
});
