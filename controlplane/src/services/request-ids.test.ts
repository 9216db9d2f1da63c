/**
 * A repeated request id acts once and gets the same response, also after a restart of the control
 * plane over the same database.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clone, create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  agent,
  BmcEndpointSchema,
  BmcProtocol,
  ClaimSchema,
  DeletionSchema,
  GivenUpCause,
  GoalBackoffSchema,
  HoldSchema,
  HoldScope,
  type Host,
  HostState,
  RunKind,
  ShutdownSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { connect, operatorClients } from '@rackwright/rpc';
import { openSqliteStore, type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { asks, offerAgentStep, preparedHost, putHost, type Situation } from './prepared.fixture.ts';
import { addSurroundings, specOf, startOn } from './rpc.fixture.ts';

let folder: string;
let running: Awaited<ReturnType<typeof start>>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-request-ids-'));
  running = await start();
  await addSurroundings(running);
  await offerAgentStep(running.store);
});

afterEach(async () => {
  await running.stop();
  await rm(folder, { recursive: true });
});

async function start() {
  const store = await openSqliteStore({
    path: join(folder, 'state.db'),
    random: nodeRandom(),
    clock: nodeClock(),
  });
  const controlPlane = await startOn(folder, store);
  const token = (await readFile(join(folder, 'identity/admin.token'), 'utf8')).trim();
  const channel = connect({
    target: `127.0.0.1:${controlPlane.operatorsPort}`,
    caPem: controlPlane.identity.caCertificatePem,
  });
  const stop = async () => {
    channel.close();
    await controlPlane.close();
  };
  return { store, stop, ...operatorClients(channel, token) };
}

async function restart(): Promise<void> {
  await running.stop();
  running = await start();
}

async function recordOf(store: StateStore, id: string): Promise<wire.HostRecord | undefined> {
  const found = await store.get(storeKey('hosts', id));
  return found.kind === 'found' ? fromBinary(wire.HostRecordSchema, found.value) : undefined;
}

/** Where a request is accepted, and what else it needs. */
interface Case {
  readonly situation: Situation;
  readonly prepare?: (record: wire.HostRecord) => void;
}

const { MANAGEABLE, PROVISIONED } = HostState;
const idle: Case = { situation: { state: MANAGEABLE, kind: undefined } };
const inUse: Case = { situation: { state: PROVISIONED, kind: undefined } };
const atHold: Case = {
  situation: { state: MANAGEABLE, kind: RunKind.CLEAN },
  prepare: (record) => {
    const run = record.host?.status?.run;
    const [step] = run?.steps ?? [];
    if (run?.waiting === undefined || step === undefined) throw new Error('no run');
    Object.assign(step, { name: 'hold', state: StepState.RUNNING });
    Object.assign(run.waiting, { reason: 'hold', message: 'prepared' });
    delete record.operation;
  },
};

const by = { by: 'user:admin', reason: 'prepared' };
const cases: Readonly<Record<string, Case>> = {
  release: inUse,
  rescue: inUse,
  abort: { situation: { state: MANAGEABLE, kind: RunKind.INSPECT } },
  skipWait: {
    situation: { state: PROVISIONED, kind: RunKind.POWER },
    prepare: (record) => {
      const [step] = record.host?.status?.run?.steps ?? [];
      const operation = record.operation?.operation;
      if (step === undefined || operation === undefined) throw new Error('no run');
      const startMs = nodeClock().nowMs();
      const deadline = timestampFromMs(startMs + 3_600_000);
      step.shutdown = create(ShutdownSchema, { startTime: timestampFromMs(startMs), deadline });
      const value = create(agent.SetPowerSchema, { on: false, shutdownDeadline: deadline });
      operation.kind = { case: 'setPower', value };
    },
  },
  confirmPower: {
    situation: { state: PROVISIONED, kind: RunKind.POWER },
    prepare: (record) => {
      const { spec, status } = record.host ?? {};
      const { operation } = record.operation ?? {};
      delete record.operation?.sentTo;
      const waiting = status?.run?.waiting;
      if (spec?.bmc === undefined || waiting === undefined || operation === undefined) {
        throw new Error('no run');
      }
      spec.bmc = create(BmcEndpointSchema, { protocol: BmcProtocol.MANUAL });
      Object.assign(waiting, { reason: 'person', message: 'prepared' });
      const value = create(agent.SetPowerSchema, { on: false });
      operation.kind = { case: 'setPower', value };
    },
  },
  resume: atHold,
  skip: atHold,
  retry: {
    ...idle,
    prepare: ({ host }) => {
      if (host?.status === undefined) return;
      host.status.backoff = create(GoalBackoffSchema, { givenUp: GivenUpCause.TOO_MANY_FAILURES });
    },
  },
  unclaim: {
    ...idle,
    prepare: ({ host }) => {
      if (host?.status !== undefined) host.status.claim = create(ClaimSchema, by);
    },
  },
  releaseHold: {
    ...idle,
    prepare: ({ host }) => {
      host?.status?.holds.push(create(HoldSchema, { ...by, scope: HoldScope.RELEASE }));
    },
  },
  cancelDelete: {
    situation: { state: MANAGEABLE, kind: RunKind.VERIFY },
    prepare: ({ host }) => {
      if (host?.status !== undefined) host.status.deletion = create(DeletionSchema, by);
    },
  },
};

const unsupported = ['provision', 'reimage'];
const names = Object.keys(asks).filter((name) => !unsupported.includes(name));

function prepared(index: number, name: string): wire.HostRecord {
  const { situation, prepare } = cases[name] ?? idle;
  const record = preparedHost(index + 1, situation);
  prepare?.(record);
  return record;
}

/** Undoes every change of the request, but keeps its id. */
async function undo(record: wire.HostRecord, id: string): Promise<boolean> {
  const key = storeKey('hosts', id);
  const found = await running.store.get(key);
  if (found.kind !== 'found') return false;
  const undone = clone(wire.HostRecordSchema, record);
  undone.requestIds = fromBinary(wire.HostRecordSchema, found.value).requestIds;
  await running.store.put(key, toBinary(wire.HostRecordSchema, undone), found.revision);
  return true;
}

test.each(names.map((name, index) => ({ name, index })))(
  '$name with the id of before answers the same host and does nothing',
  async ({ name, index }) => {
    const id = `h${index + 1}`;
    const record = prepared(index, name);
    await putHost(running.store, record);
    const call = async () => (await asks[name]?.(running.hosts, `hosts/${id}`, 'same')) as Host;
    const first = await call();
    expect(first.uid).toBe(record.host?.uid);
    await undo(record, id);
    await restart();
    const before = await recordOf(running.store, id);
    const again = await call();
    expect(again.uid).toBe(first.uid);
    expect(await recordOf(running.store, id)).toEqual(before);
  },
);

test.each(unsupported)('%s is refused twice in the same words', async (name) => {
  const { state } = name === 'provision' ? { state: HostState.AVAILABLE } : inUse.situation;
  await putHost(running.store, preparedHost(1, { state, kind: undefined }));
  const refusalText = async () => {
    const refused = await asks[name]?.(running.hosts, 'hosts/h1', 'same').catch(
      (error: unknown) => error,
    );
    return refused instanceof ApiFailure ? refused.error.message : undefined;
  };
  const first = await refusalText();
  expect(first).toContain('does not know deploy.fetch_image');
  await restart();
  expect(await refusalText()).toBe(first);
});

test('a resource is created once for a request id, and answered again', async () => {
  const calls = [
    () => running.racks.createRack({ rackId: 'r2', requestId: 'same' }),
    () =>
      running.credentials.createCredential({
        credentialId: 'c2',
        credential: { username: 'root', password: 'calvin' },
        requestId: 'same',
      }),
    () => running.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) }, requestId: 'same' }),
  ];
  for (const call of calls) {
    const { uid } = await call();
    await restart();
    expect((await call()).uid).toBe(uid);
  }
});

test('a host that was removed is not removed again under its name, nor made again', async () => {
  const spec = specOf(1);
  const make = { hostId: 'h1', host: { spec }, requestId: 'make' };
  const remove = { name: 'hosts/h1', requestId: 'remove' };
  const { uid } = await running.hosts.createHost(make);
  expect((await running.hosts.deleteHost(remove)).uid).toBe(uid);
  await expect.poll(() => recordOf(running.store, 'h1')).toBeUndefined();
  await restart();
  expect(await running.hosts.deleteHost(remove)).toMatchObject({
    uid,
    status: { state: HostState.GONE },
  });
  expect((await running.hosts.createHost(make)).uid).toBe(uid);
  expect(await recordOf(running.store, 'h1')).toBeUndefined();
  const next = await running.hosts.createHost({ ...make, requestId: 'again' });
  expect(next.uid).not.toBe(uid);
  expect((await running.hosts.deleteHost(remove)).uid).toBe(next.uid);
  expect((await running.hosts.getHost({ name: 'hosts/h1' })).status?.deletion).toBeUndefined();
});

test('another method, or another host, takes the same id as its own', async () => {
  for (const n of [1, 2]) await putHost(running.store, preparedHost(n, idle.situation));
  const requestId = 'same';
  await running.hosts.claimHost({ name: 'hosts/h1', reason: 'one', requestId });
  await running.hosts.claimHost({ name: 'hosts/h2', reason: 'two', requestId });
  const { status } = await running.hosts.unclaimHost({ name: 'hosts/h1', requestId });
  expect(status?.claim).toBeUndefined();
  expect((await recordOf(running.store, 'h2'))?.host?.status?.claim?.reason).toBe('two');
});
