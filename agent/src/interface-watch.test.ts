import { VirtualClock } from '@rackwright/bmc/conformance';
import type { LogFields } from '@rackwright/platform';
import { nodeDisk } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { lookAtInterfaces, watchInterfaces } from './interface-watch.ts';
import { quietLog } from './testing/index.ts';

/** Interfaces of which the test says whether they are there. */
async function setUp(first: Readonly<Record<string, number>>) {
  const clock = new VirtualClock();
  const files = new Map(Object.entries(first));
  const gone: unknown[] = [];
  const come: string[] = [];
  const disk = {
    read: (path: string) => {
      const index = files.get(path.split('/').at(-2) ?? '');
      const bytes = index === undefined ? undefined : new TextEncoder().encode(`${index}\n`);
      return Promise.resolve(bytes);
    },
  };
  const names = ['eth1', 'eth2'];
  const atStart = await lookAtInterfaces(disk, names);
  const log = { ...quietLog, warn: (fields: LogFields) => void gone.push(fields['interface']) };
  const onCome = (name: string): void => void come.push(name);
  const cancel = watchInterfaces({ clock, disk, log, names, atStart, onCome });
  const later = async (): Promise<void> => {
    clock.step();
    // The looks at the files.
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  return { files, gone, come, cancel, later };
}

test('an interface that was not there is told when it has stayed for a look', async () => {
  const { files, come, later } = await setUp({ eth1: 2 });
  await later();
  files.set('eth2', 7);
  await later();
  expect(come).toEqual([]);
  files.delete('eth2');
  await later();
  files.set('eth2', 8);
  await later();
  expect(come).toEqual([]);
  await later();
  expect(come).toEqual(['eth2']);
  await later();
  expect(come).toHaveLength(1);
});

test('an interface that has come again is another one; one that stays is none', async () => {
  const { files, gone, come, later } = await setUp({ eth1: 2, eth2: 3 });
  await later();
  files.delete('eth1');
  await later();
  await later();
  expect(gone).toEqual(['eth1']);
  files.set('eth1', 9);
  await later();
  await later();
  expect(come).toEqual(['eth1']);
});

test('nothing is told after the end', async () => {
  const { files, come, cancel, later } = await setUp({ eth1: 2 });
  files.set('eth2', 3);
  await later();
  cancel();
  await later();
  expect(come).toEqual([]);
});

test('this machine’s own are seen, and a name that is none is not', async () => {
  const seen = await lookAtInterfaces(nodeDisk(), ['lo', 'rackwright-none', '', '../net/lo']);
  expect([...seen.keys()]).toEqual(['lo']);
  expect(seen.get('lo')).toBeGreaterThan(0);
});
