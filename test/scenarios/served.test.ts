/** What the operators' API answers about a clean, whatever the agent does. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { addSurroundings, specOf, startFixture } from '@rackwright/controlplane/testing';
import { agent, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { runnerStep } from './words.ts';

type Fixture = Awaited<ReturnType<typeof startFixture>>;

/** As the rack's record is after the Hello of an agent that has gone since. */
async function tellAgentSteps(
  { store: kept }: Fixture,
  agentSteps: ReturnType<typeof runnerStep>[],
): Promise<void> {
  const rack = await kept.get('racks.r1');
  if (rack.kind !== 'found') throw new Error('there is no rack');
  const record = fromBinary(store.RackRecordSchema, rack.value);
  record.journal = create(agent.JournalSchema, { id: 'j1', generation: 1n });
  record.agentSteps = agentSteps;
  await kept.put('racks.r1', toBinary(store.RackRecordSchema, record), rack.revision);
}

test('ironic-11: steps are listed without an agent, and as last seen once it is gone', async () => {
  const fixture = await startFixture();
  try {
    await addSurroundings(fixture);
    const { uid } = await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
    const never = await fixture.hosts.listCleanSteps({ name: 'hosts/h1' });
    expect(never.complete).toBe(false);
    expect(never.collectedAt).toBeUndefined();
    expect(never.steps.map(({ name, enabled }) => [name, enabled])).toContainEqual([
      'deploy.erase_devices',
      true,
    ]);
    const seenAt = timestampFromMs(Date.UTC(2026, 0, 1));
    const facts = create(store.HostFactsSchema, {
      hostUid: uid,
      runnerSteps: [runnerStep('deploy.erase_devices', 10), runnerStep('bios.reset', 99)],
      runnerStepsAt: seenAt,
    });
    await fixture.store.put('facts.h1', toBinary(store.HostFactsSchema, facts), 'absent');
    await tellAgentSteps(fixture, [runnerStep('management.clear_event_log', 0)]);
    const offline = await fixture.hosts.listCleanSteps({ name: 'hosts/h1' });
    expect(offline.steps.map(({ name, source }) => [name, source])).toEqual([
      ['bios.reset', 'runner'],
      ['deploy.erase_devices', 'runner'],
      ['management.clear_event_log', 'agent'],
    ]);
    expect(offline).toMatchObject({ complete: true, collectedAt: seenAt, warnings: [] });
  } finally {
    await fixture.stop();
  }
});
