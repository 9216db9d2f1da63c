import { networkInterfaces } from 'node:os';
import { VirtualClock } from '@rackwright/bmc/conformance';
import type { LogFields } from '@rackwright/platform';
import { nodeDisk } from '@rackwright/platform/node';
import { afterMicrotasks } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { readInterfaces, watchInterfaces } from './interface-watch.ts';
import { quietLog } from './testing/index.ts';

/** Interfaces of which the test says whether they are there. */
async function setUp(first: Readonly<Record<string, number>>) {
  const clock = new VirtualClock();
  const there = new Map(Object.entries(first));
  const gone: unknown[] = [];
  const come: string[] = [];
  const disk = {
    read: () => {
      const hears = (group: string) =>
        [...there].map(([name, index]) => `${index}    ${name}  1     0     ${group}\n`).join('');
      return Promise.resolve(new TextEncoder().encode(hears('333300000001') + hears('01005e')));
    },
  };
  const names = ['eth1', 'eth2'];
  const atStart = await readInterfaces(disk);
  const log = { ...quietLog, warn: (fields: LogFields) => void gone.push(fields['interface']) };
  const onCome = (name: string): void => void come.push(name);
  const cancel = watchInterfaces({ clock, disk, log, names, atStart, onCome });
  const later = async (): Promise<void> => {
    clock.step();
    // The looks at the there.
    await afterMicrotasks(20);
  };
  return { there, gone, come, cancel, later };
}

test('an interface that was not there is told when it has stayed for a look', async () => {
  const { there, come, later } = await setUp({ eth1: 2 });
  await later();
  there.set('eth2', 7);
  await later();
  expect(come).toEqual([]);
  there.delete('eth2');
  await later();
  there.set('eth2', 8);
  await later();
  expect(come).toEqual([]);
  await later();
  expect(come).toEqual(['eth2']);
  await later();
  expect(come).toHaveLength(1);
});

test('an interface that comes again is told as a new one; one that stays is not', async () => {
  const { there, gone, come, later } = await setUp({ eth1: 2, eth2: 3 });
  await later();
  there.delete('eth1');
  await later();
  await later();
  expect(gone).toEqual(['eth1']);
  there.set('eth1', 9);
  await later();
  await later();
  expect(come).toEqual(['eth1']);
});

test('the watch reports no interface after its end', async () => {
  const { there, come, cancel, later } = await setUp({ eth1: 2 });
  there.set('eth2', 3);
  await later();
  cancel();
  await later();
  expect(come).toEqual([]);
});

test('the interfaces of this machine are seen, and a name of none is not', async () => {
  const seen = await readInterfaces(nodeDisk());
  const own = Object.entries(networkInterfaces());
  const others = own.filter(([, addresses = []]) => addresses.some(({ internal }) => !internal));
  for (const [name] of others) expect(seen.get(name), name).toBeGreaterThan(0);
  expect(seen.has('rackwright-none')).toBe(false);
});
