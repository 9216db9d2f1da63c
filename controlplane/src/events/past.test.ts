/** The past of a record ends with a gap, never silently, where the store has dropped the rest. */

import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { eventsBack } from './past.ts';

test('a page that begins where nothing is kept any more says so', async () => {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const types: unknown[] = [];
  for await (const { events } of eventsBack(store, 'racks', 'racks.r1', 7)) {
    types.push(...events.map(({ event }) => [event.subject, event.data.case]));
  }
  expect(types).toEqual([['racks/r1', 'gap']]);
  for await (const _ of eventsBack(store, 'racks', 'racks.r1', undefined)) expect.unreachable();
  await store.close();
});
