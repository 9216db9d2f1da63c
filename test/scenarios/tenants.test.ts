/** Whose a run is: it was asked for in one use of its host, and does not reach the next one. */
import { type HostId, HostState, WorkflowRunState, type store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bmcTemplate, done, Office } from './office.ts';

const { PENDING, FAILED } = WorkflowRunState;

/** Changes what the store says of a host. */
async function change(office: Office, hostId: HostId, to: (record: wire.HostRecord) => void) {
  const record = office.site.record(hostId);
  if (record === undefined) throw new Error(`${hostId} is not there`);
  to(record);
  await office.site.putRecord(hostId, record);
  await office.pass(1_000);
}

const statusOf = ({ host }: wire.HostRecord) => {
  if (host?.status === undefined) throw new Error('it has no status');
  return host.status;
};

const name = 'hosts/h1';

/** What ends one use of a host and begins another. */
const changes: Readonly<Record<string, (office: Office) => Promise<unknown>>> = {
  'its claim is given up': (office) =>
    office.clients.hosts.unclaimHost({ name, reason: 'we are done' }),
  'it is released': async (office) => {
    await office.clients.hosts.releaseHost({ name, reason: 'we are done' });
    await office.report('h1', done);
  },
  'it gets another image': (office) =>
    change(office, 'h1', (record) => {
      record.deployedRun = 7n;
    }),
  'data may have come onto its disks': (office) =>
    change(office, 'h1', (record) => {
      statusOf(record).useEpoch += 1n;
    }),
};

/** A host in use, and a run on it that waits for its template. */
async function waiting(): Promise<Office> {
  const office = await Office.open();
  await change(office, 'h1', (record) => {
    statusOf(record).state = HostState.PROVISIONED;
    record.deployedRun = 3n;
  });
  await office.clients.hosts.claimHost({ name, reason: 'our database' });
  await office.create('h1', 'clear');
  expect(await office.run('h1', 'clear')).toMatchObject({ state: PENDING });
  return office;
}

test('a pending run starts in the use of its host that it was asked for in', async () => {
  const office = await waiting();
  await office.template('clear', bmcTemplate('clear'));
  await office.pass(1_000);
  expect(office.ordered('h1')).toHaveLength(1);
});

test.each(Object.entries(changes))(
  'a pending run goes with its tenant: %s',
  async (_what, leave) => {
    const office = await waiting();
    await leave(office);
    await office.pass(1_000);
    const ordered = office.ordered('h1').length;
    await office.template('clear', bmcTemplate('clear'));
    await office.pass(1_000);
    expect(office.ordered('h1'), 'a step of the run that its tenant left').toHaveLength(ordered);
    expect(await office.run('h1', 'clear')).toBeUndefined();
  },
);

test('a host that has changed hands meanwhile gets no slot in a batch', async () => {
  const office = await Office.open(2);
  await office.template('clear', bmcTemplate('clear'));
  await office.clients.workflowBatches.createWorkflowBatch({
    workflowBatchId: 'b1',
    workflowBatch: {
      spec: {
        template: 'templates/clear',
        maxParallel: 1,
        maxFailures: 0,
        hosts: { rack: 'racks/r1' },
      },
    },
  });
  await office.pass(1_000);
  await office.clients.hosts.claimHost({ name: 'hosts/h2', reason: 'ours now' });
  await office.report('h1', done);
  await office.pass(1_000);
  expect(office.ordered('h2')).toEqual([]);
  const { hosts } = await office.clients.workflowBatches.listWorkflowBatchHosts({
    parent: 'workflowBatches/b1',
  });
  expect(hosts.find(({ host }) => host === 'hosts/h2')).toMatchObject({ state: FAILED });
});
