/** Reads real programs, and asks them or the tools of Debian the same. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { busyboxApplets } from './elf.ts';

const busybox = '/bin/busybox';

test('the commands of busybox are those that it lists itself', () => {
  const own = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).split('\n');
  const applets = own.filter((name) => name !== '' && name !== 'busybox');
  expect(busyboxApplets(readFileSync(busybox))).toEqual(applets);
});
