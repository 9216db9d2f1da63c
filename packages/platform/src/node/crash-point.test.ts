import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { makeCrashPoint } from './crash-point.ts';

const modulePath = new URL('./crash-point.ts', import.meta.url).href;

function runProgram(armed: string): { signal: string | null; stdout: string } {
  const program = `
    import { writeSync } from 'node:fs';
    import { makeCrashPoint } from ${JSON.stringify(modulePath)};
    process.on('exit', () => writeSync(1, ' exit handler'));
    const crashPoint = makeCrashPoint(${armed});
    crashPoint('stored'); writeSync(1, 'a');
    crashPoint('sent'); writeSync(1, 'b');
    crashPoint('stored'); writeSync(1, 'c');`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
  return { signal: child.signal, stdout: child.stdout.toString() };
}

test('kills the process at the armed place before the next line runs', () => {
  const ended = runProgram("{ name: 'sent', occurrence: 1 }");
  expect(ended).toEqual({ signal: 'SIGKILL', stdout: 'a' });
});

test('counts only the passings of its own name', () => {
  const ended = runProgram("{ name: 'stored', occurrence: 2 }");
  expect(ended).toEqual({ signal: 'SIGKILL', stdout: 'ab' });
});

test('lets the process live when nothing is armed or the place is never passed', () => {
  const unarmed = runProgram('undefined');
  expect(unarmed).toEqual({ signal: null, stdout: 'abc exit handler' });
  const elsewhere = runProgram("{ name: 'begun', occurrence: 1 }");
  expect(elsewhere).toEqual({ signal: null, stdout: 'abc exit handler' });
});

test.each([0, 1.5])('refuses occurrence %s', (occurrence) => {
  expect(() => makeCrashPoint({ name: 'sent', occurrence })).toThrow('whole number from 1 on');
});
