import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeCrashPoint, makeFileCrashPoint } from './crash-point.ts';

const modulePath = new URL('./crash-point.ts', import.meta.url).href;

function runProgram(armed: string): { signal: string | null; stdout: string } {
  const program = `
    import { writeSync } from 'node:fs';
    import { makeCrashPoint, makeFileCrashPoint } from ${JSON.stringify(modulePath)};
    process.on('exit', () => writeSync(1, ' exit handler'));
    const crashPoint = ${armed};
    crashPoint('stored'); writeSync(1, 'a');
    crashPoint('sent'); writeSync(1, 'b');
    crashPoint('stored'); writeSync(1, 'c');`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
  return { signal: child.signal, stdout: child.stdout.toString() };
}

test('a crash point kills the process at the armed place before the next line runs', () => {
  const ended = runProgram("makeCrashPoint({ name: 'sent', occurrence: 1 })");
  expect(ended).toEqual({ signal: 'SIGKILL', stdout: 'a' });
});

test('a crash point counts only passings of its own name', () => {
  const ended = runProgram("makeCrashPoint({ name: 'stored', occurrence: 2 })");
  expect(ended).toEqual({ signal: 'SIGKILL', stdout: 'ab' });
});

test('the process lives when nothing is armed or the place is never passed', () => {
  const unarmed = runProgram('makeFileCrashPoint(undefined)');
  expect(unarmed).toEqual({ signal: null, stdout: 'abc exit handler' });
  const elsewhere = runProgram("makeCrashPoint({ name: 'begun', occurrence: 1 })");
  expect(elsewhere).toEqual({ signal: null, stdout: 'abc exit handler' });
});

test.each([0, 1.5])('a crash point refuses occurrence %s', (occurrence) => {
  expect(() => makeCrashPoint({ name: 'sent', occurrence })).toThrow('whole number from 1 on');
});

function armedFile(armed?: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-crash-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'armed');
  if (armed !== undefined) writeFileSync(file, JSON.stringify(armed));
  return file;
}

test('a file arms a place once: it is gone as the process dies', () => {
  const file = armedFile({ name: 'stored', occurrence: 2 });
  const program = `makeFileCrashPoint(${JSON.stringify(file)})`;
  expect(runProgram(program)).toEqual({ signal: 'SIGKILL', stdout: 'ab' });
  expect(existsSync(file)).toBe(false);
  expect(runProgram(program)).toEqual({ signal: null, stdout: 'abc exit handler' });
});

test('passings count from the moment on in which the file appears', () => {
  const file = armedFile();
  const victim = spawn('sleep', ['60']);
  onTestFinished(() => void victim.kill('SIGKILL'));
  const pidFile = join(dirname(file), 'pid');
  writeFileSync(pidFile, String(victim.pid));
  const crashPoint = makeFileCrashPoint(file);
  for (let armed = 1; armed <= 2; armed += 1) {
    crashPoint('stored');
    writeFileSync(file, JSON.stringify({ name: 'stored', occurrence: 2, pidFile }));
    crashPoint('stored');
    expect(existsSync(file)).toBe(true);
    crashPoint('stored');
    expect(existsSync(file)).toBe(false);
  }
});
