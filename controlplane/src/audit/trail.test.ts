import { fromBinary } from '@bufbuild/protobuf';
import {
  type Actor,
  type AuditRecord,
  actors,
  readActor,
  userActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock, LogFields } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { afterMicrotasks, quietLog as quiet, recordingLog } from '@rackwright/platform/testing';
import { type MemoryFault, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import type { AuditEvent } from './event.ts';
import { type AuditTrail, createAuditTrail } from './trail.ts';

let fault: () => MemoryFault;
let store: StateStore;
let trail: AuditTrail;
let logged: { fields: LogFields; message: string }[];
let timers: { atMs: number; run: () => void }[];
let nowMs: number;

const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (delayMs, run) => {
    const timer = { atMs: nowMs + delayMs, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  },
};

beforeEach(async () => {
  nowMs = 1_000;
  timers = [];
  logged = [];
  fault = () => ({ kind: 'none' });
  const faults = ({ kind }: { kind: string }) =>
    kind === 'append' ? fault() : ({ kind: 'none' } as const);
  store = await openMemoryStore({ random: nodeRandom(), faults, clock });
  const log = recordingLog(({ fields, message }) => void logged.push({ fields, message }));
  trail = createAuditTrail({ store, clock, random: nodeRandom(), log });
});

const event = (message: string): AuditEvent => ({
  kind: 'request',
  actor: userActor('admin'),
  action: 'HostService.CleanHost',
  resource: 'hosts/h1',
  outcome: 'ok',
  message,
});

async function settle(): Promise<void> {
  await afterMicrotasks(50);
}

async function pass(ms: number): Promise<void> {
  const untilMs = nowMs + ms;
  for (;;) {
    await settle();
    const next = timers.toSorted((a, b) => a.atMs - b.atMs)[0];
    if (next === undefined || next.atMs > untilMs) break;
    timers = timers.filter((each) => each !== next);
    nowMs = Math.max(nowMs, next.atMs);
    next.run();
  }
  nowMs = untilMs;
}

async function records(): Promise<AuditRecord[]> {
  const { entries } = await store.log.back(500);
  return entries
    .map(({ value }) => fromBinary(wire.AuditEntryRecordSchema, value).record)
    .filter((record) => record !== undefined);
}

/** Without the begin records of calls. */
async function shown(): Promise<AuditRecord[]> {
  const { entries } = await store.log.back(500);
  const read = entries.map(({ value }) => fromBinary(wire.AuditEntryRecordSchema, value));
  return read.flatMap(({ begun, record }) => (begun || record === undefined ? [] : [record]));
}

const messages = async () => (await records()).map(({ message }) => message);

test('the entry of a call is stored before the call is answered', async () => {
  await trail.keep(event('one'));
  expect(await records()).toMatchObject([
    {
      actor: userActor('admin'),
      action: 'HostService.CleanHost',
      resource: 'hosts/h1',
      outcome: 'ok',
    },
  ]);
  expect(timers).toEqual([]);
});

test('an entry that the store did not confirm is repeated, and stored once', async () => {
  let left = 3;
  fault = () => ({ kind: (left -= 1) >= 0 ? 'answerLost' : 'none' });
  let kept = false;
  void trail.keep(event('one')).then(() => (kept = true));
  await settle();
  expect(kept).toBe(false);
  await pass(1_600);
  expect(kept).toBe(true);
  expect(await messages()).toEqual(['one']);
  expect(trail.lost()).toBe(0);
});

test('a call is answered after a while even if its entry is not stored yet', async () => {
  fault = () => ({ kind: 'requestLost' });
  let kept = false;
  void trail.keep(event('one')).then(() => (kept = true));
  await pass(1_900);
  expect(kept).toBe(false);
  await pass(200);
  expect(kept).toBe(true);
  expect(await messages()).toEqual([]);
  fault = () => ({ kind: 'none' });
  await pass(1_000);
  expect(await messages()).toEqual(['one']);
});

test('an entry that is given up is counted, and stands whole in the log', async () => {
  fault = () => ({ kind: 'requestLost' });
  trail.note(event('one'));
  await pass(301_000);
  expect(trail.lost()).toBe(1);
  expect(logged).toHaveLength(1);
  expect(logged[0]?.fields).toMatchObject({ message: 'one', resource: 'hosts/h1', lost: 1 });
  expect(logged[0]?.message).toContain('audit record was lost');
});

test('the number of entries that wait for the store is bounded', async () => {
  fault = () => ({ kind: 'requestLost' });
  for (let at = 0; at < 8_192 + 64 + 5; at += 1) trail.note(event(`${at}`));
  await settle();
  expect(trail.lost()).toBe(5);
  expect(logged.at(-1)?.fields).toMatchObject({ reason: 'too many records wait' });
  fault = () => ({ kind: 'none' });
  await pass(1_000);
  const { entries } = await store.log.back(1);
  expect(entries[0]?.position).toBe(8_192 + 64);
});

test('a few refused strangers are recorded each minute, with the count of the others', async () => {
  const stranger = { ...event('no token'), kind: 'signIn', actor: actors.unknown } as const;
  for (let at = 0; at < 100; at += 1) trail.noteStranger(stranger);
  await pass(60_000);
  const found = await messages();
  expect(found).toHaveLength(61);
  expect(found[0]).toBe('no token (39 more before it are not listed)');
  trail.noteStranger(stranger);
  await settle();
  expect((await messages()).slice(0, 2)).toEqual(['no token', found[0]]);
});

test('refusals are counted for each caller apart, so that a flood hides no other', async () => {
  const refused = (actor: Actor) =>
    ({ ...event(actor), kind: 'refusal', actor, outcome: 'PERMISSION_DENIED' }) as const;
  for (let at = 0; at < 100_000; at += 1) trail.noteRefusal(refused(readActor('token:loud')));
  trail.noteRefusal(refused(readActor('token:quiet')));
  await settle();
  expect((await messages())[0]).toBe('token:quiet');
  await trail.close();
  const found = await messages();
  expect(found).toHaveLength(62);
  expect(found[0]).toBe('token:loud (99939 more before it are not listed)');
});

test('calls that were permitted and failed are listed up to a higher bound', async () => {
  const failed = { ...event('busy'), outcome: 'FAILED_PRECONDITION' } as const;
  for (let at = 0; at < 1_000; at += 1) trail.noteRefusal(failed);
  await trail.close();
  expect((await store.log.back(1)).entries[0]?.position).toBe(601);
});

test('queued entries are stored at close, and later ones are logged', async () => {
  for (let at = 0; at < 100; at += 1) trail.note(event(`${at}`));
  await trail.close();
  expect(await messages()).toHaveLength(100);
  trail.note(event('late'));
  expect(trail.lost()).toBe(1);
  expect(logged[0]?.fields).toMatchObject({ message: 'late' });
});

describe('a call that is about to be carried out', () => {
  const { outcome: _, ...asked } = event('by hand');
  /** As in the next start of the control plane. */
  const startAgain = async (isOnly = true): Promise<void> => {
    trail = createAuditTrail({ store, clock, random: nodeRandom(), log: quiet });
    trail.start(isOnly);
    await settle();
  };

  test('stands in the stream before it is, and is not shown', async () => {
    await trail.begin(asked);
    const [entry] = (await store.log.back(10)).entries;
    const { begun, record } = fromBinary(
      wire.AuditEntryRecordSchema,
      entry?.value ?? new Uint8Array(),
    );
    expect(begun).toBe(true);
    expect(record).toMatchObject({ action: 'HostService.CleanHost', resource: 'hosts/h1' });
  });

  test('is refused when the stream does not take it', async () => {
    fault = () => ({ kind: 'requestLost' });
    const begun = trail.begin(asked).catch((error: unknown) => String(error));
    await pass(2_100);
    expect(await begun).toContain('nothing was done');
    fault = () => ({ kind: 'none' });
    await pass(1_000);
    expect((await shown()).map(({ outcome }) => outcome)).toEqual(['UNAVAILABLE']);
    await startAgain();
    expect(await shown()).toHaveLength(1);
  });

  test('has a record though the control plane died before it could say its end', async () => {
    await trail.begin(asked);
    const ended = await trail.begin({ ...asked, message: 'another' });
    await trail.keep(event('another'), ended);
    await startAgain();
    const [lost, kept, ...rest] = await shown();
    expect(rest).toEqual([]);
    expect(kept).toMatchObject({ message: 'another', outcome: 'ok' });
    expect(lost).toMatchObject({
      outcome: 'UNKNOWN',
      actor: userActor('admin'),
      resource: 'hosts/h1',
    });
    expect(lost?.message).toContain('by hand; asked for at 1970-01-01T00:00:01.000Z; the control');
    nowMs += 3 * 24 * 3_600_000;
    await startAgain();
    expect(await shown()).toHaveLength(2);
  });

  test("is another replica's affair while that may be at work on it", async () => {
    await trail.begin(asked);
    await startAgain(false);
    await pass(599_000);
    expect(await shown()).toEqual([]);
    await pass(601_000);
    expect(await shown()).toMatchObject([{ outcome: 'UNKNOWN' }]);
  });

  test('is not taken for one that was cut short by the process that carries it out', async () => {
    trail.start(true);
    const id = await trail.begin(asked);
    await pass(601_000);
    expect(await shown()).toEqual([]);
    await trail.keep(event('by hand'), id);
    await pass(601_000);
    expect(await shown()).toMatchObject([{ outcome: 'ok' }]);
  });
});

test('an entry that is written again after a crash is on record once', async () => {
  await trail.keepOnce(event('one'), 'accepted-uid');
  nowMs += 3_600_000;
  await trail.keepOnce(event('one'), 'accepted-uid');
  expect(await messages()).toEqual(['one']);
});

test('the trail cuts texts that are too long for a record', async () => {
  await trail.keep({ ...event('x'.repeat(100_000)), requestId: 'y'.repeat(100_000) });
  const [record] = await records();
  expect(record?.message).toHaveLength(1_000);
  expect(record?.requestId.endsWith('…')).toBe(true);
});
