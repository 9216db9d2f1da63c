/** J1 and J2 on a disk that forgets unsynced writes, with a power cut at any call. */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk, quietLog as log } from '@rackwright/platform/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Journal } from './journal.ts';
import type { RecordInit } from './state.ts';

const quiet = () => undefined;
const clock: Clock = { nowMs: () => 1_000_000, suspendAwareMs: () => 0, after: () => quiet };
/** Small: about every third record makes the journal rewrite its file. */
const rewriteAtBytes = 200;

/** One life of the journal on these files. */
function open(files: ForgetfulFiles): Promise<Journal> {
  const parts = { disk: forgetfulDisk(files), path: '/state/journal', clock, log };
  return Journal.open({ ...parts, random: nodeRandom(), rewriteAtBytes });
}

function received(id: string): RecordInit {
  return { case: 'received', value: { operation: create(agent.OperationSchema, { id }) } };
}

/**
 * Appends one record after the other until the power goes; returns those that were reported
 * durable.
 */
async function appendMany(journal: Journal, life: number, count: number): Promise<string[]> {
  const durable: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const id = `h/${life}/${at}/1`;
    try {
      await journal.append(received(id));
      durable.push(id);
    } catch {
      break;
    }
  }
  return durable;
}

test('each appended record is there after a power cut, and so is the journal', async () => {
  const files = new ForgetfulFiles();
  const first = await open(files);
  files.cutPower();
  const ids: string[] = [];
  for (let life = 0; life < 6; life += 1) {
    const journal = await open(files);
    expect(journal.state.id).toBe(first.state.id);
    expect([...journal.state.operations.keys()]).toEqual(ids);
    ids.push(...(await appendMany(journal, life, 1)));
    files.cutPower();
  }
  expect(ids).toHaveLength(6);
});

test('a power cut at any moment loses no record that was reported as durable', async () => {
  const lives = fc.array(
    fc.record({ calls: fc.nat({ max: 40 }), records: fc.integer({ min: 1, max: 8 }) }),
    { minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(lives, async (each) => {
      const files = new ForgetfulFiles();
      const durable: string[] = [];
      let before: { readonly id: string; readonly generation: bigint } | undefined;
      for (const [life, { calls, records }] of each.entries()) {
        files.dieAfter(calls);
        const journal = await open(files).catch(() => undefined);
        if (journal !== undefined) {
          // R9: no generation is shown twice.
          const { id, generation } = journal.state;
          if (before !== undefined) expect(id).toBe(before.id);
          expect(generation).toBeGreaterThan(before?.generation ?? 0n);
          before = { id, generation };
          durable.push(...(await appendMany(journal, life, records)));
        }
        files.cutPower();
      }
      const { operations } = (await open(files)).state;
      expect(durable.filter((id) => !operations.has(id))).toEqual([]);
    }),
  );
});
