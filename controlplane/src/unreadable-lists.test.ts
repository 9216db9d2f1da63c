/** Lists in which one record cannot be decoded: the others are shown, and the log names it. */
import { HostState } from '@rackwright/messages';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { preparedHost, putHost } from './services/prepared.fixture.ts';
import { addSurroundings, type Fixture, startFixture } from './services/rpc.fixture.ts';

const source = 'steps: [{ name: a, script: "true", idempotent: true, destructive: false }]';
const image = `registry.example/os@sha256:${'ab'.repeat(32)}`;

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

type List = (given: Fixture) => Promise<readonly { readonly name: string }[]>;

const lists: readonly (readonly [string, string, List])[] = [
  ['pools', 'pools.broken', async ({ pools }) => (await pools.listPools({})).pools],
  ['racks', 'racks.broken', async ({ racks }) => (await racks.listRacks({})).racks],
  [
    'sorted racks',
    'racks.broken',
    async ({ racks }) => (await racks.listRacks({ orderBy: 'name' })).racks,
  ],
  [
    'batches',
    'workflowBatches.broken',
    async ({ workflowBatches }) => (await workflowBatches.listWorkflowBatches({})).workflowBatches,
  ],
  [
    'workflows',
    'workflows.h1.broken',
    async ({ workflows }) => (await workflows.listWorkflows({ parent: 'hosts/h1' })).workflows,
  ],
];

test.each(lists)(
  'a list of %s shows all but the record that is broken',
  async (_what, key, list) => {
    const { templates, pools, workflowBatches, store, lines } = fixture;
    await putHost(store, preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined }));
    await templates.createTemplate({ templateId: 'hello', template: { source } });
    const spec = { template: 'templates/hello', hosts: { rack: 'racks/r1' } };
    await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch: { spec } });
    await pools.createPool({
      poolId: 'p1',
      pool: { spec: { hosts: { labels: { pool: 'web' } }, image } },
    });
    await store.put(key, Uint8Array.of(255, 255), 'absent');
    expect(await list(fixture)).toHaveLength(1);
    expect(lines.map(({ fields }) => fields['record'])).toContain(key);
  },
);
