/** Sensors and counters of the kernel, from folders that look like /sys. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linuxBurnIn, readCelsius, readMemoryErrors, readNetworkCards } from './burn-in.ts';

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

test('network cards tell what was counted of them, other interfaces nothing', async () => {
  expect(await readNetworkCards(sys)).toEqual([]);
  const counters = (folder: string, values: Readonly<Record<string, number>>) =>
    has(
      Object.fromEntries(
        Object.entries(values).map(([name, count]) => [
          `class/net/${folder}/statistics/${name}`,
          `${count}\n`,
        ]),
      ),
    );
  has({
    'class/net/lo/carrier_changes': '0\n',
    'class/net/eno1/device/vendor': '0x8086\n',
    'class/net/eno1/speed': '10000\n',
    'class/net/eno1/carrier_changes': '3\n',
    'class/net/eno2/device/vendor': '0x8086\n',
    'class/net/eno2/speed': '-1\n',
  });
  counters('eno1', { rx_bytes: 900, tx_bytes: 800, rx_errors: 2, rx_crc_errors: 7, tx_errors: 1 });
  counters('eno2', { rx_errors: 4, rx_crc_errors: 3, tx_carrier_errors: 5 });
  const bytes = { receivedBytes: 900, sentBytes: 800 };
  const errors = { receiveErrors: 7, sendErrors: 1, linkChanges: 3 };
  expect(await readNetworkCards(sys)).toEqual([
    { name: 'eno1', linkMbps: 10_000, ...bytes, ...errors },
    {
      ...{ name: 'eno2', linkMbps: 0, receivedBytes: 0, sentBytes: 0 },
      ...{ receiveErrors: 4, sendErrors: 5, linkChanges: 0 },
    },
  ]);
});
