import { create } from '@bufbuild/protobuf';
import { agent, asAgentSessionId, BmcReadKind, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { createSessionRegistry, type LiveSession } from '../../host/index.ts';
import { writeRecord } from '../../records/index.ts';
import { BmcReads, readsPerRackMax, readWaitMs } from './bmc-reads.ts';

type Sent = agent.SessionResponse['message'];

const timers: { readonly ms: number; act: () => void }[] = [];
const clock = {
  after: (ms: number, act: () => void) => {
    const timer = { ms, act };
    timers.push(timer);
    return () => void timers.splice(timers.indexOf(timer), 1);
  },
};
const forever = new AbortController().signal;

async function setUp(bmcNetworks: readonly string[] = []) {
  timers.length = 0;
  const store = await openMemoryStore({ random: nodeRandom() });
  const name = 'credentials/bmc';
  const credential = { name, version: 3n, bmcNetworks: [...bmcNetworks] };
  const record = create(wire.CredentialRecordSchema, { credential });
  const key = storeKey('credentials', 'bmc');
  await writeRecord({ store }, wire.CredentialRecordSchema, key, record, 'absent');
  const registry = createSessionRegistry();
  const notes: unknown[] = [];
  const reads = new BmcReads({
    ...{ store, clock, registry },
    openCredential: () => ({ username: 'u', password: 'hidden' }),
    audit: { note: (event) => void notes.push(event) },
  });
  const sent: Sent[] = [];
  const session = (bmcReads: readonly BmcReadKind[] = [BmcReadKind.SENSORS]): LiveSession => ({
    ...{
      rackId: 'r1',
      sessionId: asAgentSessionId('s'),
      operationKinds: [],
      bmcReads,
      openedMs: 0,
    },
    watchesConsoles: false,
    journal: create(agent.JournalSchema),
    lastMessageMs: () => 0,
    awaitsReport: () => false,
    send: (message) => void sent.push(message),
    end: () => {},
  });
  const question = {
    hostUid: 'u1',
    bmc: create(agent.BmcAccessSchema, { address: '10.0.0.1', credential: name }),
    expectedIdentity: undefined,
    kind: BmcReadKind.SENSORS,
    maxEntries: 0,
  };
  return { reads, registry, session, sent, notes, question, store };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const answer = (id: string, hostUid = 'u1') => {
  return create(agent.BmcReadSchema, { id, hostUid, reading: { complete: true } });
};

test('the secret goes before the question, on record; only the asked rack answers', async () => {
  const { reads, registry, session, sent, notes, question } = await setUp();
  registry.open(session());
  const asked = reads.ask('r1', question, forever);
  await settle();
  expect(sent).toMatchObject([
    { case: 'credentialValue', value: { version: 3n, password: 'hidden' } },
    { case: 'readBmc', value: { id: '1', bmc: { credentialVersion: 3n } } },
  ]);
  expect(notes).toHaveLength(1);
  reads.receiveAnswer('r2', answer('1'));
  reads.receiveAnswer('r1', answer('1', 'u2'));
  reads.receiveAnswer('r1', answer('9'));
  reads.receiveAnswer('r1', answer('1'));
  expect(await asked).toMatchObject({ kind: 'answered', read: { reading: { complete: true } } });
  expect(timers).toEqual([]);
});

test('while the store does not answer no credential counts as unusable', async () => {
  const { reads, registry, session, sent, question, store } = await setUp();
  registry.open(session());
  await store.close();
  const asked = reads.ask('r1', question, forever);
  await expect(asked).rejects.toMatchObject({ error: { kind: 'unavailable' } });
  expect(sent).toEqual([]);
});

test('an agent that is away, or cannot read, is not asked; no secret goes astray', async () => {
  const { reads, registry, session, sent, question } = await setUp(['192.0.2.0/24']);
  expect(await reads.ask('r1', question, forever)).toEqual({ kind: 'noAgent' });
  registry.open(session([]));
  expect(await reads.ask('r1', question, forever)).toEqual({ kind: 'agentCannot' });
  registry.open(session());
  expect(await reads.ask('r1', question, forever)).toMatchObject({ kind: 'noSecret' });
  expect(sent).toEqual([]);
});

test('a question ends with its session, its time or its caller; there are not many', async () => {
  const { reads, registry, session, question } = await setUp();
  registry.open(session());
  const caller = new AbortController();
  const first = reads.ask('r1', question, caller.signal);
  const others = Array.from({ length: readsPerRackMax - 1 }, () =>
    reads.ask('r1', question, forever),
  );
  await settle();
  expect(await reads.ask('r1', question, forever)).toMatchObject({ kind: 'tooMany' });
  caller.abort();
  expect(await first).toEqual({ kind: 'noAnswer' });
  const [timer] = timers;
  expect(timer?.ms).toBe(readWaitMs);
  timer?.act();
  expect(await others[0]).toEqual({ kind: 'noAnswer' });
  registry.open(session());
  for (const each of others) expect(await each).toEqual({ kind: 'noAnswer' });
  expect(timers).toEqual([]);
});

test('questions count while their secrets are opened, and those asked at once', async () => {
  const { reads, registry, session, sent, question } = await setUp();
  registry.open(session());
  const asked = Array.from({ length: readsPerRackMax + 1 }, () =>
    reads.ask('r1', question, forever),
  );
  expect(await asked.at(-1)).toMatchObject({ kind: 'tooMany', waiting: readsPerRackMax });
  registry.open(session());
  for (const each of asked.slice(0, -1)) expect(await each).toEqual({ kind: 'noAnswer' });
  expect(sent.filter((message) => message.case === 'readBmc')).toEqual([]);
  expect(timers).toEqual([]);
});
