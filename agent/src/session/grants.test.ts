/** Boot grants on a clock that is set back: an expired grant never opens again. */
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { Journal } from '../journal/index.ts';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { Grants } from './grants.ts';

const quiet = () => undefined;
const key = new Uint8Array([1, 2, 3]);
const expiresAtMs = 10_000;

/** Grants of one life of an agent, on a wall clock that the test sets. */
async function start(disk: MemoryDisk, startMs: number) {
  const wall = { nowMs: startMs };
  const clock: Clock = { nowMs: () => wall.nowMs, suspendAwareMs: () => 0, after: () => quiet };
  const random = nodeRandom();
  const parts = { disk: disk.open().disk, path: '/state/journal', clock, random, log };
  const journal = await Journal.open(parts);
  const grants = new Grants({ journal, clock, random, onOpened: quiet });
  return { wall, grants };
}

const operation = (name: string) => ({ id: `${name}/1/0/1`, hostUid: name, hostName: 'hosts/h' });
const wanted = { macs: ['52:54:00:00:00:01'], expiresAtMs };

test('an expired grant stays expired when the clock goes back, also after a restart', async () => {
  const disk = new MemoryDisk();
  const { wall, grants } = await start(disk, 1_000);
  await grants.open(operation('u1'), wanted);
  wall.nowMs = expiresAtMs + 1;
  // That it was so late is in the journal from here on.
  await grants.open(operation('u2'), { ...wanted, expiresAtMs: expiresAtMs + 1_000 });
  wall.nowMs = 1_000;
  await grants.open(operation('u3'), wanted);
  expect(await grants.bind(operation('u1').id, key)).not.toBe('bound');
  expect(await grants.bind(operation('u3').id, key)).toBe('expired');
  const next = await start(disk, 1_000);
  expect(await next.grants.bind(operation('u1').id, key)).not.toBe('bound');
  expect(await next.grants.bind(operation('u3').id, key)).toBe('expired');
  expect(await next.grants.bind(operation('u2').id, key)).toBe('bound');
});

test('a grant is bound until the moment at which it expires, and not from then on', async () => {
  for (const [atMs, outcome] of [
    [expiresAtMs - 1, 'bound'],
    [expiresAtMs, 'expired'],
  ] as const) {
    const { wall, grants } = await start(new MemoryDisk(), 1_000);
    await grants.open(operation('u1'), wanted);
    wall.nowMs = atMs;
    expect(await grants.bind(operation('u1').id, key)).toBe(outcome);
  }
});
