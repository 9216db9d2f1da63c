/** The runs of a host through the operators' API, and what is said of one. */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  FailureType,
  HostErrorSchema,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { preparedHost, putHost } from '../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  startFixture,
  violatedFields,
} from '../services/rpc.fixture.ts';

let fixture: Fixture;
const parent = 'hosts/h1';

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

function ended(number: bigint, outcome: RunOutcome, seconds: number) {
  const failed = outcome === RunOutcome.FAILED;
  return create(RunSchema, {
    kind: RunKind.CLEAN,
    number: asRunNumber(number),
    phase: RunPhase.ENDED,
    outcome,
    startTime: timestampFromMs(0),
    endTime: timestampFromMs(seconds * 1_000),
    steps: [
      { name: 'power.off', state: StepState.SUCCEEDED, attempt: 1 },
      {
        name: 'deploy.erase_devices',
        state: failed ? StepState.FAILED : StepState.SUCCEEDED,
        attempt: 1,
        error: failed ? 'disk A: I/O error' : '',
      },
    ],
    currentStep: failed ? 1 : 2,
    ...(failed ? { error: { type: FailureType.IO_ERROR, message: 'disk A: I/O error' } } : {}),
  });
}

async function keep(run: ReturnType<typeof ended>, hostUid = 'u1'): Promise<void> {
  const record = create(wire.FinishedRunRecordSchema, { host: parent, hostUid, run });
  const key = storeKey('runs', hostUid, String(run.number));
  await fixture.store.put(key, toBinary(wire.FinishedRunRecordSchema, record), 'absent');
}

/** A host with an inspection under way as its run 12, after eleven cleans. */
async function busyHost(): Promise<void> {
  const record = preparedHost(1, { state: HostState.MANAGEABLE, kind: RunKind.INSPECT });
  if (record.host?.status?.run !== undefined) record.host.status.run.number = asRunNumber(12);
  record.runCount = 12n;
  await putHost(fixture.store, record);
  for (let number = 1n; number <= 11n; number++) {
    await keep(ended(number, RunOutcome.SUCCEEDED, Number(number) * 10));
  }
  await keep(ended(99n, RunOutcome.SUCCEEDED, 1), 'u0');
}

test('the present run and those that are kept are listed, newest first, page by page', async () => {
  await busyHost();
  const first = await fixture.history.listHostRuns({ parent, pageSize: 5 });
  expect(first.runs.map(({ number }) => number)).toEqual([12n, 11n, 10n, 9n, 8n]);
  const { nextPageToken: pageToken } = first;
  const second = await fixture.history.listHostRuns({ parent, pageSize: 100, pageToken });
  expect(second.runs.map(({ number }) => number)).toEqual([7n, 6n, 5n, 4n, 3n, 2n, 1n]);
  expect(second.nextPageToken).toBe('');
  const unknown = fixture.history.listHostRuns({ parent: 'hosts/nobody' });
  expect((await failureOf(unknown)).kind).toBe('notFound');
});

test('a kept run that cannot be decoded is left out of the list', async () => {
  await busyHost();
  await fixture.store.put(storeKey('runs', 'u1', '98'), Uint8Array.of(255, 255), 'absent');
  const { runs } = await fixture.history.listHostRuns({ parent, pageSize: 100 });
  expect(runs).toHaveLength(12);
});

test('a run is read by its number, also when another run is current', async () => {
  await busyHost();
  expect((await fixture.history.getHostRun({ name: `${parent}/runs/12` })).kind).toBe(
    RunKind.INSPECT,
  );
  expect((await fixture.history.getHostRun({ name: `${parent}/runs/3` })).kind).toBe(RunKind.CLEAN);
  const other = fixture.history.getHostRun({ name: `${parent}/runs/99` });
  expect((await failureOf(other)).kind).toBe('notFound');
  expect(await violatedFields(fixture.history.getHostRun({ name: `${parent}/runs/x` }))).toEqual([
    'name',
  ]);
});

test('the run that holds the host is explained as the host is', async () => {
  await busyHost();
  const name = `${parent}/runs/12`;
  const ofRun = await fixture.history.explainRun({ name });
  const ofHost = await fixture.hosts.explainHost({ name: parent });
  expect(ofRun).toMatchObject({
    subject: name,
    headline: ofHost.headline,
    unblock: ofHost.unblock,
  });
  expect(ofRun.blocker).toBe('the agent of the rack');
});

test('a run that has ended says how, and how long such runs usually take', async () => {
  await busyHost();
  const name = `${parent}/runs/7`;
  const told = await fixture.history.explainRun({ name });
  expect(told).toMatchObject({
    subject: name,
    headline: 'clean 7 succeeded after 1 min 10 s',
    unblock: [],
    lastEvidence: 'deploy.erase_devices',
  });
  // The last ten took 20 s to 110 s.
  expect(told.usualDuration?.seconds).toBe(65n);
});

test('the failure that still stands comes with what can be done, an old one without', async () => {
  const record = preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined });
  const failed = ended(2n, RunOutcome.FAILED, 30);
  if (record.host?.status !== undefined) {
    record.host.status.run = failed;
    record.host.status.lastError = create(HostErrorSchema, {
      failure: { type: FailureType.IO_ERROR, message: 'disk A: I/O error' },
      run: 'clean 2',
      runKind: RunKind.CLEAN,
    });
  }
  record.runCount = 2n;
  await putHost(fixture.store, record);
  await keep(ended(1n, RunOutcome.FAILED, 30));
  const last = await fixture.history.explainRun({ name: `${parent}/runs/2` });
  expect(last.headline).toBe('clean 2 failed after 30 s at deploy.erase_devices: ioError');
  expect(last.causes.map(({ text }) => text)).toEqual(['disk A: I/O error']);
  expect(last.unblock.join()).toContain('rackwright host clean h1');
  const old = await fixture.history.explainRun({ name: `${parent}/runs/1` });
  expect(old.unblock).toEqual([]);
});
