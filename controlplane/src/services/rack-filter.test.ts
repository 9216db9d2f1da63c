/** Lists that are limited to a rack refuse a rack that does not exist. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  startFixture,
  violatedFields,
} from './rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

test('a rack that does not exist is not found; one without hosts has an empty list', async () => {
  const { hosts, discovery } = fixture;
  const lists = [
    (rack: string) => hosts.listHosts({ rack }),
    (rack: string) => discovery.listDiscoveredMachines({ rack }),
  ];
  for (const list of lists) {
    const unknown = await failureOf(list('racks/r9'));
    expect(unknown).toMatchObject({ kind: 'notFound' });
    expect(unknown.message).toContain('racks/r9');
    expect(await violatedFields(list('r9'))).toEqual(['rack']);
    expect(await list('racks/r1')).toMatchObject({ nextPageToken: '' });
  }
});

test('a batch that selects by a rack that does not exist says so', async () => {
  const { templates, workflowBatches } = fixture;
  const source =
    'steps:\n  - { name: a, script: "echo a", idempotent: true, destructive: false }\n';
  await templates.createTemplate({ templateId: 't1', template: { source } });
  const spec = { template: 'templates/t1', hosts: { rack: 'racks/r9' } };
  const call = workflowBatches.createWorkflowBatch({
    workflowBatchId: 'b1',
    workflowBatch: { spec },
  });
  expect(await violatedFields(call)).toContain('workflow_batch.spec.hosts.rack');
});
