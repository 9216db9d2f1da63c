import { create } from '@bufbuild/protobuf';
import {
  agent,
  asAgentSessionId,
  ConsoleState,
  FailureType,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { createSessionRegistry, type LiveSession } from '../../host/index.ts';
import { writeRecord } from '../../records/index.ts';
import {
  type ConsoleView,
  ConsoleViews,
  pieceBytesMax,
  viewsPerRackMax,
  waitingBytesMax,
} from './console-views.ts';

const forever = new AbortController().signal;

async function setUp(bmcNetworks: readonly string[] = []) {
  const store = await openMemoryStore({ random: nodeRandom() });
  const name = 'credentials/bmc';
  const credential = { name, version: 3n, bmcNetworks: [...bmcNetworks] };
  const record = create(wire.CredentialRecordSchema, { credential });
  const key = storeKey('credentials', 'bmc');
  await writeRecord({ store }, wire.CredentialRecordSchema, key, record, 'absent');
  const registry = createSessionRegistry();
  const notes: unknown[] = [];
  const consoles = new ConsoleViews({
    ...{ store, registry },
    openCredential: () => ({ username: 'u', password: 'hidden' }),
    audit: { note: (event) => void notes.push(event) },
  });
  const sent: agent.SessionResponse['message'][] = [];
  const session = (watchesConsoles = true): LiveSession => ({
    ...{
      rackId: 'r1',
      sessionId: asAgentSessionId('s'),
      operationKinds: [],
      bmcReads: [],
      openedMs: 0,
    },
    watchesConsoles,
    journal: create(agent.JournalSchema),
    lastMessageMs: () => 0,
    awaitsReport: () => false,
    send: (message) => void sent.push(message),
    end: () => {},
  });
  const bmc = create(agent.BmcAccessSchema, { address: '10.0.0.1', credential: name });
  const question = { hostUid: 'u1', bmc, expectedIdentity: undefined };
  const open = async (): Promise<ConsoleView> => {
    const opened = await consoles.open('r1', question);
    if (opened.kind !== 'open') throw new Error(opened.kind);
    return opened.view;
  };
  return { consoles, registry, session, sent, notes, question, open };
}

const bytesOf = (text: string) => new TextEncoder().encode(text);
function output(changes: Partial<Omit<agent.ConsoleOutput, '$typeName' | '$unknown'>> = {}) {
  return create(agent.ConsoleOutputSchema, { id: '1', hostUid: 'u1', ...changes });
}

test('the secret goes before the question, on record; only the asked rack is heard', async () => {
  const { consoles, registry, session, sent, notes, open } = await setUp();
  registry.open(session());
  const view = await open();
  expect(sent).toMatchObject([
    { case: 'credentialValue', value: { version: 3n, password: 'hidden' } },
    { case: 'watchConsole', value: { id: '1', hostUid: 'u1', bmc: { credentialVersion: 3n } } },
  ]);
  expect(notes).toHaveLength(1);
  const waiting = view.next(forever);
  consoles.receiveOutput('r2', output({ content: bytesOf('no') }));
  consoles.receiveOutput('r1', output({ content: bytesOf('no'), hostUid: 'u2' }));
  consoles.receiveOutput('r1', output({ content: bytesOf('no'), id: '9' }));
  consoles.receiveOutput('r1', output({ content: new Uint8Array(pieceBytesMax + 1) }));
  consoles.receiveOutput('r1', output({ content: bytesOf('GRUB'), state: 99 as ConsoleState }));
  expect(await waiting).toEqual({
    ...{ kind: 'output', content: bytesOf('GRUB'), droppedBytes: 0n },
    ...{ state: ConsoleState.UNSPECIFIED, message: '' },
  });
  view.close();
  view.close();
  expect(sent.filter((each) => each.case === 'endConsole')).toHaveLength(1);
});

test('a slow viewer loses the oldest bytes and is told; for the agent all were taken', async () => {
  const { consoles, registry, session, sent, open } = await setUp();
  registry.open(session());
  const [slow, quick] = [await open(), await open()];
  const piece = new Uint8Array(pieceBytesMax);
  const pieces = (2 * waitingBytesMax) / pieceBytesMax;
  consoles.receiveOutput('r1', output({ state: ConsoleState.HEARD }));
  for (let n = 0; n < pieces; n += 1) {
    consoles.receiveOutput('r1', output({ content: piece }));
    consoles.receiveOutput('r1', output({ id: '2', content: bytesOf(`${n}`) }));
    const shown = await quick.next(forever);
    expect(shown).toMatchObject({ content: bytesOf(`${n}`), droppedBytes: 0n });
  }
  const shown = await slow.next(forever);
  const lost = { droppedBytes: BigInt(waitingBytesMax), state: ConsoleState.HEARD };
  expect(shown).toMatchObject({ kind: 'output', ...lost });
  expect(await slow.next(forever)).toMatchObject({ droppedBytes: 0n, state: 0 });
  const taken = sent.flatMap((each) => (each.case === 'consoleTaken' ? [each.value.bytes] : []));
  expect(taken).toHaveLength(pieces);
  expect(Number(taken.at(-1))).toBeGreaterThanOrEqual(pieces * pieceBytesMax);
});

test('small pieces are bounded by their number, words by their length', async () => {
  const { consoles, registry, session, open } = await setUp();
  registry.open(session());
  const view = await open();
  for (let n = 0; n < 10_000; n += 1)
    consoles.receiveOutput('r1', output({ content: bytesOf('x') }));
  const first = await view.next(forever);
  expect(first).toMatchObject({ droppedBytes: 10_000n - 4_096n });
  const message = 'x'.repeat(100_000);
  const another = await open();
  consoles.receiveOutput('r1', output({ id: '2', failure: FailureType.UNSUPPORTED, message }));
  const failure = { kind: 'failed', failure: FailureType.UNSUPPORTED };
  expect(await another.next(forever)).toEqual({ ...failure, message: message.slice(0, 1_024) });
});

test('an agent that is away, or has no consoles, is not asked; no secret goes astray', async () => {
  const { consoles, registry, session, sent, question } = await setUp(['192.0.2.0/24']);
  expect(await consoles.open('r1', question)).toEqual({ kind: 'noAgent' });
  registry.open(session(false));
  expect(await consoles.open('r1', question)).toEqual({ kind: 'agentCannot' });
  registry.open(session());
  expect(await consoles.open('r1', question)).toMatchObject({ kind: 'noSecret' });
  expect(sent).toEqual([]);
});

test('a view ends with its session and its caller; there are not many', async () => {
  const { consoles, registry, session, question } = await setUp();
  registry.open(session());
  const opened = await Promise.all(
    Array.from({ length: viewsPerRackMax + 1 }, () => consoles.open('r1', question)),
  );
  expect(opened.at(-1)).toEqual({ kind: 'tooMany', waiting: viewsPerRackMax });
  const [first, second] = opened.flatMap((each) => (each.kind === 'open' ? [each.view] : []));
  const caller = new AbortController();
  const waiting = first?.next(caller.signal);
  caller.abort();
  expect(await waiting).toBeUndefined();
  const last = second?.next(forever);
  registry.open(session());
  expect(await last).toEqual({ kind: 'gone' });
  expect(await consoles.open('r1', question)).toMatchObject({ kind: 'open' });
});
