import { BurnInKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { softwareBurnIn } from '../linux/burn-in.ts';
import type { BurnInMachine } from '../machine/burn-in-machine.ts';
import { machine, runStep } from '../steps/steps.fixture.ts';
import { keptOf, on, right } from './burn-in.fixture.ts';
import { burnInCpu } from './cpu.ts';

const order = { destructive: false };

async function burn(change: Partial<BurnInMachine>, given: Record<string, string> = {}) {
  return await runStep(burnInCpu, { duration: '5s', ...given }, order, on(change)).end;
}

/** Tells these results, one round after the other. */
function telling(...rounds: readonly (readonly string[])[]): BurnInMachine['calculate'] {
  return (told) => {
    setImmediate(() => rounds.forEach((round) => told(round)));
    return { stop: async () => {} };
  };
}

test('a thread of this machine computes the known hashes', async () => {
  const change = { machine: { ...machine, burnIn: softwareBurnIn } };
  const end = await runStep(burnInCpu, { duration: '1s' }, order, change).end;
  expect(end.result.kind).toBe('complete');
  const kept = keptOf(end);
  expect(kept).toMatchObject({ kind: BurnInKind.CPU, passed: true, problem: '' });
  expect(kept?.parts).toMatchObject([{ name: '1 thread', errors: 0n, finding: '' }]);
  expect(kept?.parts[0]?.passes).toBeGreaterThan(0n);
  expect(kept?.parts[0]?.writtenPerSecond).toBeGreaterThan(0n);
});

test('one wrong hash among right ones is found, and named', async () => {
  const wrong = right().with(0, right()[1] ?? '');
  const end = await burn({ calculate: telling(right(), wrong, right()) });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'hardwareDefect' });
  expect(keptOf(end)).toMatchObject({ passed: false, celsiusMax: 41 });
  expect(keptOf(end)?.problem).toBe('2 errors: thread 0 came to another result: SHA-256');
  expect(keptOf(end)?.parts).toMatchObject([{ name: '2 threads', errors: 2n, passes: 3n }]);
});

test.each([
  ['fewer results than there are parts', telling(right().slice(1))],
  ['no result at all', telling([])],
])('%s is an error', async (_, calculate) => {
  expect((await burn({ calculate })).result).toMatchObject({ type: 'hardwareDefect' });
});

test('a thread that ends by itself, or that tells nothing, is an error', async () => {
  const ends: BurnInMachine['calculate'] = (_, ended) => {
    setImmediate(() => ended('exit 1'));
    return { stop: async () => {} };
  };
  const ended = await burn({ calculate: ends });
  expect(keptOf(ended)?.problem).toBe('2 errors: thread 0 ended by itself: exit 1');
  const silent = await burn({ calculate: telling() });
  expect(keptOf(silent)?.problem).toBe('2 errors: thread 0 has told nothing for 120 s');
});

test('a machine that gets too hot is let cool at once', async () => {
  let looks = 0;
  const celsius = async () => 80 + 5 * looks++;
  const end = await burn({ celsius }, { duration: '10h', celsius_max: '90' });
  const problem = 'the machine was too hot: 95 °C; at most 90 °C are allowed';
  expect(end.result).toMatchObject({ type: 'hardwareDefect', message: problem });
  expect(looks).toBe(4);
});

test('a cancelled burn-in has no result', async () => {
  const running = runStep(burnInCpu, { duration: '72h' }, order, on({}));
  running.stop();
  const end = await running.end;
  expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(keptOf(end)).toBeUndefined();
});

test.each([
  [{ duration: '73h' }, 'duration: must be a time as "90s", "5m" or "2h" of 1 to 259200'],
  [{ duration: '0s' }, 'duration: must be a time as "90s", "5m" or "2h" of 1 to 259200'],
  [{ celsius_max: '-1' }, 'celsius_max: must be a number of 0 to 150'],
  [{ threads: '3' }, 'unknown arguments threads; known are duration, celsius_max'],
])('the burn-in refuses %o', async (given, message) => {
  expect((await burn({}, given)).result).toMatchObject({ type: 'invalidArgument', message });
});
