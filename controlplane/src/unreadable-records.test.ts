/** Records of any kind that cannot be decoded: the rest of the control plane works on. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Log } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog, recordingLog } from '@rackwright/platform/testing';
import { asWriteId, MemoryDisk, openMemoryStore } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { settled, startOn } from './services/rpc.fixture.ts';

const keys = [
  'eventSinks.a1',
  'pools.a1',
  'racks.a1',
  'tokens.a1',
  'workflowBatches.a1',
  'workflows.a1.t1',
];
let folder: string;
const disk = new MemoryDisk();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'controlplane-'));
});

afterEach(() => rm(folder, { recursive: true }));

/** Writes a present or a new record. */
function breakRecord(key: string): void {
  const expected = disk.changesOf(key).at(-1)?.revision ?? 'absent';
  const writeId = asWriteId(`cut short ${disk.latest()}`);
  disk.write({ key, value: Uint8Array.of(255, 255), expected, writeId });
}

async function start(log: Log) {
  const store = await openMemoryStore({ random: nodeRandom(), disk });
  return { store, controlPlane: await startOn(folder, store, log) };
}

test('a control plane starts with unreadable records, and names each revision once', async () => {
  await (await start(quietLog)).controlPlane.close();
  for (const key of keys) breakRecord(key);
  const lines: string[] = [];
  const log = recordingLog(({ level, fields, message }) => {
    if (level === 'warn') lines.push(`${String(fields['record'] ?? fields['records'])} ${message}`);
  });
  const { store, controlPlane } = await start(log);
  const told = (key: string) => `${key} a record cannot be decoded; it counts as absent`;
  expect(lines.toSorted()).toEqual(keys.map(told));
  for (const key of keys) breakRecord(key);
  await settled(store);
  expect(lines.slice(keys.length).toSorted()).toEqual(keys.map(told));
  await controlPlane.close();
});
