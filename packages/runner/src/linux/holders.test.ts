/** Holders of a disk and parts that hide capacity, removed before the first write. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Exec } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { showAll } from './hidden-area.ts';
import { dismantle } from './holders.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'rackwright-holders-'));
  put('proc/self/mountinfo', '');
  // LUKS on md on a partition of the disk, as the kernel shows them.
  put('sys/block/sda/sda1/partition', '1');
  holds('sys/block/sda/sda1', 'md127');
  put('sys/block/md127/md/level', 'raid1\n');
  put('sys/block/md127/md/array_state', 'clean\n');
  holds('sys/block/md127', 'dm-0');
  put('sys/block/dm-0/dm/name', 'secret\n');
  put('sys/block/dm-0/dm/uuid', 'CRYPT-LUKS2-0001-secret\n');
  put('sys/block/dm-0/dev', '253:0\n');
});

afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

function holds(below: string, holder: string): void {
  mkdirSync(join(root, below, 'holders'), { recursive: true });
  symlinkSync(join(root, 'sys/block', holder), join(root, below, 'holders', holder));
}

/** A dmsetup that removes the named device, or nothing; its calls are kept in order. */
function dmsetup(removes = true) {
  const done: string[] = [];
  const exec: Exec = {
    run: async ({ file, args }) => {
      const arrayState = readFileSync(join(root, 'sys/block/md127/md/array_state'), 'utf8').trim();
      done.push(`${[file, ...args].join(' ')} while md127 is ${arrayState}`);
      if (removes) {
        rmSync(join(root, 'sys/block/dm-0'), { recursive: true });
        rmSync(join(root, 'sys/block/md127/holders/dm-0'));
      }
      return { kind: 'exited', code: 0, stdout: '', stderr: removes ? '' : 'Device is busy' };
    },
  };
  return { exec, done };
}

const region = { name: 'sda', sizeBytes: 8192, logicalBlockBytes: 512 };
const takeDown = (exec: Exec) =>
  dismantle(exec, { sys: join(root, 'sys'), proc: join(root, 'proc') }, [region]);

test('holders go from the top down; an array is gone when its disk says so', async () => {
  const { exec, done } = dmsetup();
  // The kernel removes the link when the array stops; this one does not.
  await expect(takeDown(exec)).rejects.toThrow('sda is still held by md127');
  expect(done).toEqual(['dmsetup remove --retry -- secret while md127 is clean']);
  expect(readFileSync(join(root, 'sys/block/md127/md/array_state'), 'utf8')).toBe('clear');
  rmSync(join(root, 'sys/block/sda/sda1/holders'), { recursive: true });
  expect(await takeDown(exec)).toEqual([]);
});

test('a holder that does not go is named, whatever the exit code says', async () => {
  const { exec } = dmsetup(false);
  await expect(takeDown(exec)).rejects.toThrow(/dm-0 \(CRYPT: secret\) cannot be removed: .*busy/);
  expect(readFileSync(join(root, 'sys/block/md127/md/array_state'), 'utf8')).toBe('clean\n');
});

test('an array with unwritten data is not stopped: a member may be in no plan', async () => {
  put('sys/block/md127/md/array_state', 'active\n');
  const { exec } = dmsetup();
  const taken = takeDown(exec);
  await expect(taken).rejects.toThrow('the array md127 (raid1) is active, and not at rest');
  expect(readFileSync(join(root, 'sys/block/md127/md/array_state'), 'utf8')).toBe('active\n');
});

test('the runner waits until an array that was written to is at rest', async () => {
  put('sys/block/md127/md/array_state', 'active-idle\n');
  const { exec } = dmsetup();
  setTimeout(() => put('sys/block/md127/md/array_state', 'clean\n'), 150);
  await expect(takeDown(exec)).rejects.toThrow('sda is still held by md127');
  expect(readFileSync(join(root, 'sys/block/md127/md/array_state'), 'utf8')).toBe('clear');
});

test('the runner touches nothing when anything of it is mounted', async () => {
  put('proc/self/mountinfo', '21 1 253:0 / /data rw - ext4 /dev/dm-0 rw\n');
  const { exec, done } = dmsetup();
  await expect(takeDown(exec)).rejects.toThrow('sda is in use by mount /data');
  expect(done).toEqual([]);
  expect(existsSync(join(root, 'sys/block/dm-0'))).toBe(true);
});

/** An ATA disk by its sectors; `stubborn` keeps the size that it has. */
function ataDisk(stubborn = false) {
  const disk = { addressable: 98_304, native: 131_072, real: 262_144 };
  const asked: string[] = [];
  const ask = async (args: readonly string[]): Promise<string> => {
    const line = args.filter((each) => !each.startsWith('--yes')).join(' ');
    if (args.length > 1) asked.push(line);
    const [, sectors = ''] = /^-N p(\d+)$/.exec(line) ?? [];
    if (sectors !== '' && !stubborn) disk.addressable = Number(sectors);
    // ACS-2 §7.11: a disk with a host protected area refuses to restore its overlay.
    if (line === '--dco-restore' && disk.addressable === disk.native) disk.native = disk.real;
    return line === '--dco-identify'
      ? `DCO Revision: 0x0002\n\tReal max sectors: ${disk.real}\n`
      : ` max sectors   = ${disk.addressable}/${disk.native}, HPA is enabled\n`;
  };
  return { disk, asked, ask };
}

test('the host protected area is shown first, then the overlay, then the rest', async () => {
  const { disk, asked, ask } = ataDisk();
  const lines = await showAll(ask, 'sda');
  expect(asked).toEqual(['-N p131072', '--dco-restore', '-N p262144']);
  expect(disk.addressable).toBe(262_144);
  expect(lines).toHaveLength(3);
});

test('only the size that the disk says afterwards counts, and no exit code', async () => {
  const { ask } = ataDisk(true);
  await expect(showAll(ask, 'sda')).rejects.toThrow(
    'sda: 98304 of 131072 sectors can be addressed still: power the host off and on, and try again',
  );
});

test('a disk without hidden areas gets no command', async () => {
  const asked: string[] = [];
  const ask = async (args: readonly string[]) => {
    asked.push(args.join(' '));
    return ' max sectors   = 131072/131072, HPA is disabled\n';
  };
  expect(await showAll(ask, 'sda')).toEqual([]);
  expect(asked).toEqual(['-N', '--dco-identify']);
});
