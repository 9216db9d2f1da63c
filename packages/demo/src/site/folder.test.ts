import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  makeFolder,
  processesOf,
  programPath,
  removeFolder,
  removeStaleFolders,
} from './folder.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function folderWithProgram(): string {
  const folder = makeFolder();
  folders.push(folder);
  mkdirSync(join(folder, 'programs'));
  writeFileSync(programPath(folder, 'idle'), 'setInterval(() => {}, 1000);');
  return folder;
}

async function idleIn(folder: string) {
  const child = spawn(process.execPath, [programPath(folder, 'idle')], { stdio: 'ignore' });
  await expect.poll(() => processesOf(folder), { interval: 10 }).toContain(child.pid);
  return child;
}

test('the cleanup ends processes that run a program of the folder, and no others', async () => {
  const [one, other] = [folderWithProgram(), folderWithProgram()];
  const [ofOne, ofOther] = [await idleIn(one), await idleIn(other)];
  // Mentions the folder, as a person's "tail -f" does, and runs nothing out of it.
  const onlooker = spawn('tail', ['-f', programPath(one, 'idle')], { stdio: 'ignore' });
  const ended = once(ofOne, 'exit');
  await removeFolder(one);
  await ended;
  expect(existsSync(one)).toBe(false);
  expect(processesOf(other)).toEqual([ofOther.pid]);
  expect(onlooker.signalCode).toBeNull();
  ofOther.kill('SIGKILL');
  onlooker.kill('SIGKILL');
});

test('the folder of a dead demo is removed, and that of a running one stays', async () => {
  const [dead, alive] = [folderWithProgram(), folderWithProgram()];
  const child = await idleIn(dead);
  const ended = once(child, 'exit');
  // As if another process had got the owner's pid since.
  const owner = JSON.parse(readFileSync(join(dead, 'owner.json'), 'utf8')) as { pid: number };
  writeFileSync(join(dead, 'owner.json'), JSON.stringify({ ...owner, startedAt: '1' }));
  expect(await removeStaleFolders()).toBeGreaterThan(0);
  await ended;
  expect(existsSync(dead)).toBe(false);
  expect(existsSync(alive)).toBe(true);
});
