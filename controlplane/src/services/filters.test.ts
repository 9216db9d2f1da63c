/** Filters and orders of racks, workflows, runs and the audit, and of the watch of racks. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  asRunNumber,
  WatchRacksResponse_Kind as Kind,
  Role,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { storeKey } from '@rackwright/store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSide, type Names, tokenFor } from './access.fixture.ts';
import { type Fixture, failureOf, startFixture } from './rpc.fixture.ts';

let fixture: Fixture;
let aa: Names;

beforeAll(async () => {
  fixture = await startFixture();
  aa = await addSide(fixture, 'aa');
  await addSide(fixture, 'zz');
  const [kind, phase] = [RunKind.INSPECT, RunPhase.ENDED];
  for (const number of [21, 22, 23, 30]) {
    const outcome = number === 22 ? RunOutcome.FAILED : RunOutcome.SUCCEEDED;
    const run = { kind, phase, outcome, number: asRunNumber(number), requestedBy: 'goal' };
    const bytes = toBinary(
      wire.FinishedRunRecordSchema,
      create(wire.FinishedRunRecordSchema, { run }),
    );
    await fixture.store.put(storeKey('runs', 'aa-uid', String(number)), bytes, 'absent');
  }
});

afterAll(() => fixture.stop());

/** Names of all pages, of one item each. */
async function paged<P extends { readonly nextPageToken: string }>(
  fetch: (pageToken: string) => Promise<P>,
  namesOf: (page: P) => readonly (string | number)[],
): Promise<(string | number)[]> {
  const names: (string | number)[] = [];
  let pageToken = '';
  do {
    const page = await fetch(pageToken);
    names.push(...namesOf(page));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return names;
}

const racks = (filter: string, orderBy = '') =>
  paged(
    (pageToken) => fixture.racks.listRacks({ filter, orderBy, pageToken, pageSize: 1 }),
    (page) => page.racks.map(({ name }) => name),
  );

test('racks are filtered and sorted', async () => {
  expect(await racks('')).toEqual(['racks/aa-rack', 'racks/zz-rack']);
  expect(await racks('', 'name desc')).toEqual(['racks/zz-rack', 'racks/aa-rack']);
  expect(await racks('name = zz-rack')).toEqual(['racks/zz-rack']);
  expect(await racks('connected = true OR frozen = true')).toEqual([]);
  expect(await racks('NOT name = aa-rack', 'create_time')).toEqual(['racks/zz-rack']);
});

const runs = (filter: string, orderBy = '') =>
  paged(
    (pageToken) =>
      fixture.history.listHostRuns({ parent: aa.host, filter, orderBy, pageToken, pageSize: 1 }),
    (page) => page.runs.map(({ number }) => Number(number)),
  );

test('the runs of a host are filtered and sorted by their fields, newest first', async () => {
  expect(await runs('kind = inspect')).toEqual([30, 23, 22, 21]);
  expect(await runs('outcome = failed')).toEqual([22]);
  expect(await runs('number > 22 AND kind = inspect', 'number')).toEqual([23, 30]);
  expect(await runs('kind = inspect', 'outcome desc, number')).toEqual([22, 21, 23, 30]);
});

test('workflows and their runs are filtered; those of one host are sorted', async () => {
  const { workflows } = fixture;
  const listed = (request: object) =>
    paged(
      (pageToken) => workflows.listWorkflows({ parent: 'hosts/-', ...request, pageToken }),
      (page) => page.workflows.map(({ name }) => name),
    );
  expect(await listed({ pageSize: 1 })).toHaveLength(2);
  expect(await listed({ filter: 'name = hosts/aa*', pageSize: 1 })).toEqual([aa.workflow]);
  expect(await listed({ filter: 'disabled = true' })).toEqual([]);
  const sorted = { parent: aa.host, orderBy: 'state desc', filter: 'disabled = false' };
  expect(await listed(sorted)).toEqual([aa.workflow]);
  expect(await failureOf(listed({ orderBy: 'state' }))).toMatchObject({
    violations: [{ field: 'order_by', description: expect.stringContaining('one host') }],
  });
  const ofRuns = (filter: string) => workflows.listWorkflowRuns({ parent: aa.workflow, filter });
  const all = (await ofRuns('')).runs.length;
  expect((await ofRuns('number >= 1 AND state:*')).runs).toHaveLength(all);
  expect((await ofRuns('number < 1')).runs).toEqual([]);
});

test('the entries that one page reads are bounded, and the next page continues', async () => {
  const bytes = toBinary(wire.WorkflowRecordSchema, create(wire.WorkflowRecordSchema));
  const puts = Array.from({ length: 1_500 }, (_, n) =>
    fixture.store.put(storeKey('workflows', 'nobody', `t${n}`), bytes, 'absent'),
  );
  await Promise.all(puts);
  const ask = { parent: 'hosts/-', filter: 'name = hosts/zz*' };
  const first = await fixture.workflows.listWorkflows(ask);
  expect(first.workflows).toEqual([]);
  expect(first.nextPageToken).not.toBe('');
  const { nextPageToken: pageToken } = first;
  const second = await fixture.workflows.listWorkflows({ ...ask, pageToken });
  expect(second.workflows).toHaveLength(1);
  expect(second.nextPageToken).toBe('');
});

test('the audit is filtered, and only within what a caller may see', async () => {
  const filter = 'action = *.CreateRack AND outcome = OK';
  const found = async (text: string) =>
    (await fixture.audit.listAuditRecords({ filter: text })).records.map((each) => each.resource);
  expect(await found(filter.toLowerCase().replace('and', 'AND'))).toEqual([]);
  const created = await found('action = *.CreateRack');
  expect(created).toEqual(['racks/zz-rack', 'racks/aa-rack']);
  expect(await found('action = *.CreateRack AND NOT resource = *aa*')).toEqual(['racks/zz-rack']);
});

test('wrong filters and orders of every list are refused with their place', async () => {
  const { history, workflows, audit } = fixture;
  const wrong = { filter: 'size > 1' };
  const calls = [
    fixture.racks.listRacks(wrong),
    history.listHostRuns({ parent: aa.host, ...wrong }),
    workflows.listWorkflows({ parent: aa.host, ...wrong }),
    workflows.listWorkflowRuns({ parent: aa.workflow, ...wrong }),
    audit.listAuditRecords(wrong),
    fixture.racks.watchRacks(wrong)[Symbol.asyncIterator]().next(),
  ];
  for (const call of calls) {
    const violations = [{ field: 'filter', description: expect.stringContaining('character 1') }];
    expect(await failureOf(call)).toMatchObject({ violations });
  }
  for (const call of [
    fixture.racks.listRacks({ orderBy: 'size' }),
    history.listHostRuns({ parent: aa.host, orderBy: 'size' }),
    workflows.listWorkflows({ parent: aa.host, orderBy: 'size' }),
    workflows.listWorkflowRuns({ parent: aa.workflow, orderBy: 'size' }),
  ]) {
    const violations = [{ field: 'order_by', description: expect.stringContaining('character 1') }];
    expect(await failureOf(call)).toMatchObject({ violations });
  }
});

test('a watch of racks tells what comes to match and what ceases to', async () => {
  const lines: string[] = [];
  const watch = fixture.racks.watchRacks({ filter: 'frozen = true' });
  const { racks: client } = fixture;
  const frozen = { name: 'racks/aa-rack', reason: 'a drill' };
  for await (const { kind, rack } of watch) {
    lines.push(`${kind} ${rack?.name ?? ''}`);
    if (kind === Kind.SYNCED) await client.freezeRack(frozen);
    if (kind === Kind.UPDATED) await client.thawRack(frozen);
    if (kind === Kind.DELETED) break;
  }
  const last = lines.pop();
  expect([lines[0], last]).toEqual([`${Kind.SYNCED} `, `${Kind.DELETED} racks/aa-rack`]);
  expect(new Set(lines.slice(1))).toEqual(new Set([`${Kind.UPDATED} racks/aa-rack`]));
});

test('a filter finds nothing that is out of scope', async () => {
  const token = await tokenFor(fixture, 'rack-aa', Role.VIEWER, { racks: [aa.rack] });
  const own = operatorClients(fixture.channel, token);
  for (const orderBy of ['', 'name desc']) {
    const { racks: found } = await own.racks.listRacks({ filter: 'name = *rack', orderBy });
    expect(found.map(({ name }) => name)).toEqual([aa.rack]);
  }
  const { records } = await own.audit.listAuditRecords({ filter: 'resource = *zz*' });
  expect(records).toEqual([]);
});
