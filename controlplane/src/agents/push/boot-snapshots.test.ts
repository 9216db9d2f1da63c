import { recordingLog } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { BootSnapshots } from './boot-snapshots.ts';

test('while no list can be made, one retry is due, whoever asks for the list', async () => {
  const heap = new EventHeap();
  const { clock } = new SimProcess('cp', heap, 0, () => false);
  let tries = 0;
  const snapshots = new BootSnapshots(
    {
      ...{
        clock,
        log: recordingLog(() => {}),
        store: await openMemoryStore({ random: seededRandom(1) }),
      },
      hosts: {
        hostIdOfUid: () => undefined,
        wake: () => {},
        fail: () => Promise.reject(new Error('no host')),
      },
    },
    'r1',
    {
      lists: {
        of: () => {
          tries += 1;
          return Promise.reject(new Error('the store is away'));
        },
      },
      secrets: { has: () => true, give: () => Promise.resolve(undefined) },
      send: () => {},
      mayTell: () => true,
    },
  );
  const asked = await Promise.all(Array.from({ length: 5 }, () => snapshots.send()));
  expect(asked).toEqual(Array.from({ length: 5 }, () => 'failed'));
  const before = tries;
  heap.after(10_500, () => {});
  await heap.run(10_500, () => false);
  expect(tries - before).toBe(10);
});
