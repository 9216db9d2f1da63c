import { BurnInKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { BurnInMachine } from '../machine/burn-in-machine.ts';
import type { StepContext } from '../steps/step.ts';
import { runStep } from '../steps/steps.fixture.ts';
import { keptOf, on } from './burn-in.fixture.ts';
import { burnInMemory } from './memory.ts';

const mib = 1024 * 1024;
const pageBytes = 4_096;

async function burn(
  change: Partial<BurnInMachine> = {},
  given: Record<string, string> = {},
  more: Partial<StepContext> = {},
) {
  const context = on(change, more);
  return await runStep(burnInMemory, { duration: '1s', ...given }, undefined, context).end;
}

/** Memory that `spoil` gets once it has been written, before it is read for the first time. */
async function burnSpoilt(spoil: (memory: Uint8Array) => void) {
  const taken: Uint8Array[] = [];
  let isSpoilt = false;
  const allocate = (bytes: number) => {
    const block = new Uint8Array(bytes);
    taken.push(block);
    return block;
  };
  const progress = (_: number, text: string): void => {
    if (isSpoilt || !text.includes('pass 1 reads')) return;
    isSpoilt = true;
    for (const block of taken) spoil(block);
  };
  return await burn({ allocate }, {}, { reportProgress: progress });
}

test('sound memory passes, and is given back', async () => {
  const taken: Uint8Array[] = [];
  const allocate = (bytes: number) => {
    taken.push(new Uint8Array(bytes));
    return taken.at(-1);
  };
  const end = await burn({ allocate });
  expect(end.result.kind).toBe('complete');
  expect(keptOf(end)).toMatchObject({ kind: BurnInKind.MEMORY, passed: true });
  const part = { name: 'memory', bytes: BigInt(64 * mib), errors: 0n, finding: '' };
  expect(keptOf(end)?.parts).toMatchObject([part]);
  expect(keptOf(end)?.parts[0]?.passes).toBeGreaterThan(0n);
  expect(taken.map(({ length }) => length)).toEqual([0]);
});

test('one bit that flips is found, and named', async () => {
  const at = 17 * mib + 12_345;
  const end = await burnSpoilt((memory) => {
    memory[at] = (memory[at] ?? 0) ^ 0b0001_0000;
  });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'hardwareDefect' });
  expect(keptOf(end)?.problem).toBe(`1 wrong page: byte ${at} differs in the bits 00010000`);
  expect(keptOf(end)?.parts).toMatchObject([{ errors: 1n }]);
});

test('a page that answers for another one is found, though its content is whole', async () => {
  const from = 33 * mib + 5 * pageBytes;
  const end = await burnSpoilt((memory) => {
    memory.copyWithin(5 * pageBytes, from, from + pageBytes);
  });
  expect(keptOf(end)?.problem).toContain(`its page is as that at ${from} should be`);
});

test.each([
  [{ corrected: 7, uncorrected: 0 }, {}, '4 errors that ECC corrected; at most 0 are allowed'],
  [{ corrected: 7, uncorrected: 0 }, { corrected_max: '4' }, ''],
  [{ corrected: 3, uncorrected: 1 }, {}, '1 error that ECC could not correct'],
])('errors that ECC counts meanwhile are judged: %o', async (after, given, problem) => {
  const counts = [{ corrected: 3, uncorrected: 0 }, after];
  const end = await burn({ memoryErrors: async () => counts.shift() }, given);
  expect(keptOf(end)?.problem).toBe(problem);
  const corrected = BigInt(after.corrected - 3);
  expect(keptOf(end)?.parts).toMatchObject([{ correctedErrors: corrected }]);
});

test('a machine without enough free memory is not said to be sound', async () => {
  const message = '319 MiB of memory are free; 320 MiB are needed';
  const little = await burn({ availableBytes: async () => 320 * mib - 1 });
  expect(little.result).toMatchObject({ kind: 'failed', type: 'unsupported', message });
  const none = await burn({ allocate: () => undefined });
  expect(none.result).toMatchObject({ kind: 'failed', type: 'unsupported' });
});
