/** What the operators' API answers about a clean, whatever the agent does. */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { store } from '@rackwright/api';
import { addSurroundings, specOf, startFixture } from '@rackwright/controlplane/testing';
import { expect, test } from 'vitest';
import { runnerStep } from './words.ts';

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
    const offline = await fixture.hosts.listCleanSteps({ name: 'hosts/h1' });
    expect(offline.steps.map(({ name }) => name)).toEqual(['bios.reset', 'deploy.erase_devices']);
    expect(offline).toMatchObject({ complete: true, collectedAt: seenAt });
  } finally {
    await fixture.stop();
  }
});
