/** A finished run is reported once, whichever replica stores it and however often it is seen. */
import { create } from '@bufbuild/protobuf';
import { asRunNumber, type Run, RunPhase, store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { FinishedRuns } from './finished-runs.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {}, child: () => quiet };

test('two replicas, and one after a restart, tell of an ended run once between them', async () => {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const told: string[] = [];
  const replica = (name: string) =>
    new FinishedRuns({
      ...{ store, log: quiet },
      onRunEnded: (run: Run) => told.push(`${name} ${run.number}`),
    });
  const record = create(wire.HostRecordSchema, {
    host: {
      name: 'hosts/h',
      uid: 'u',
      status: { run: { number: asRunNumber(2), phase: RunPhase.ENDED } },
    },
    finishedRuns: [{ number: asRunNumber(1), phase: RunPhase.ENDED }],
  });
  const a = replica('a');
  await a.keepAfter(record);
  await a.keepAfter(record);
  await replica('b').keepAfter(record);
  await replica('a again').keepAfter(record);
  expect(told).toEqual(['a 1', 'a 2']);
});
