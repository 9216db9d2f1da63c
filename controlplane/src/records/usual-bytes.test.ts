/** The life of a host takes few bytes of storage. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HostState } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { type Change, openSqliteStore, type StateStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { erased, inspected, virtioDisk } from '../host/testing/bench.ts';
import {
  afterErase,
  complete,
  connectAgent,
  proved,
  runnerUp,
} from '../host/testing/plain-agent.ts';
import { Rig } from '../host/testing/rig.ts';
import { usualBytes } from './usual-bytes.ts';

/** All writes of the life of one host, in order. */
async function changesOfLife(): Promise<Change[]> {
  const rig = new Rig();
  rig.addRack('r1');
  rig.addHost(1);
  let store: StateStore | undefined;
  const replica = await rig.replica({
    wrapStore: (inner) => {
      store = inner;
      return inner;
    },
  });
  const plain = await connectAgent(rig, replica);
  for (let left = 100; left > 0 && plain.ids().length === 0; left -= 1) await rig.advance(100);
  await plain.report(proved());
  await plain.report(complete());
  await plain.report(complete());
  await runnerUp(rig, plain);
  // The clean works in the boot of the inspection.
  await plain.report(inspected([virtioDisk]));
  await plain.report(inspected([virtioDisk]));
  await afterErase(plain, plain.evidence([erased(virtioDisk)]));
  expect(rig.status().state).toBe(HostState.AVAILABLE);
  const changes: Change[] = [];
  for (const { key } of (await store?.list(''))?.entries ?? []) {
    changes.push(...((await store?.history(key)) ?? []));
  }
  return changes.sort((one, other) => one.revision - other.revision);
}

test('the records of a host’s life take little more than half of their bytes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-usual-'));
  const path = join(folder, 'store.db');
  try {
    const changes = await changesOfLife();
    const parts = { path, random: nodeRandom(), clock: nodeClock() };
    const store = await openSqliteStore({ ...parts, dictionary: usualBytes() });
    let bytes = 0;
    for (const change of changes) {
      if (change.kind === 'delete') continue;
      bytes += change.value.length;
      await store.put(`life.k${change.revision}`, change.value, 'absent');
    }
    await store.close();
    const database = new DatabaseSync(path);
    const row = database.prepare('SELECT sum(length(value)) AS stored FROM changes').get();
    database.close();
    expect(changes.length).toBeGreaterThan(20);
    expect(Number(row?.['stored'])).toBeLessThan(bytes * 0.56);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the usual bytes are the same each time, for a store keeps each form that it is given', () => {
  expect(Buffer.compare(usualBytes(), usualBytes())).toBe(0);
});
