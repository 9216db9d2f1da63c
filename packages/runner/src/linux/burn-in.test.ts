/** Sensors and counters of the kernel, from folders that look like /sys. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linuxBurnIn, readCelsius, readMemoryErrors } from './burn-in.ts';

let sys = '';
beforeEach(() => {
  sys = mkdtempSync(join(tmpdir(), 'rackwright-burn-in-'));
});
afterEach(() => rmSync(sys, { recursive: true }));

function has(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(sys, path)), { recursive: true });
    writeFileSync(join(sys, path), text);
  }
}

test('the hottest sensor counts, and one that is broken does not', async () => {
  expect(await readCelsius(sys)).toBeUndefined();
  has({
    'class/hwmon/hwmon0/temp1_input': '41500\n',
    'class/hwmon/hwmon0/temp1_crit': '99000\n',
    'class/hwmon/hwmon1/temp2_input': '63000\n',
    'class/hwmon/hwmon1/temp3_input': '255000\n',
    'class/hwmon/hwmon1/temp4_input': 'nan\n',
    'class/hwmon/hwmon1/fan1_input': '90000\n',
  });
  expect(await readCelsius(sys)).toBe(63);
});

test('errors of all memory controllers are summed; without one nothing is said', async () => {
  expect(await readMemoryErrors(sys)).toBeUndefined();
  has({
    'devices/system/edac/mc/mc0/ce_count': '3\n',
    'devices/system/edac/mc/mc0/ue_count': '0\n',
    'devices/system/edac/mc/mc1/ce_count': '4\n',
    'devices/system/edac/mc/mc1/ue_count': '1\n',
    'devices/system/edac/mc/power/control': 'auto\n',
  });
  expect(await readMemoryErrors(sys)).toEqual({ corrected: 7, uncorrected: 1 });
});

test('free memory is what the kernel says that programs could have', async () => {
  has({ meminfo: 'MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    8192 kB\n' });
  const machine = linuxBurnIn({ sys, proc: sys });
  expect(await machine.availableBytes()).toBe(8 * 2 ** 20);
  expect(machine.allocate(2 ** 60)).toBeUndefined();
});
