/** What systemd says of the units, without starting them. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

const files = join(import.meta.dirname, '../../packages/debian/files');
/** How exposed a service is, from 0 to 10, as `systemd-analyze security` reckons. */
const exposureMax = 2.5;
const services = [
  ['agent', 'rackwright-agent.service'],
  ['controlplane', 'rackwright-controlplane.service'],
] as const;
let root: string;

const analyze = (...args: string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
const isThere = analyze('--version').error === undefined;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'units-'));
  mkdirSync(join(root, 'units'));
  for (const name of ['agent', 'controlplane']) {
    for (const file of readdirSync(join(files, name))) {
      if (/\.(service|socket|path)$/.test(file)) {
        copyFileSync(join(files, name, file), join(root, 'units', file));
      }
    }
  }
});
afterAll(() => rmSync(root, { recursive: true }));

beforeEach((context) => {
  if (!isThere) context.skip('peer missing: systemd-analyze: run npm run peers');
});

describe('the units of the packages', () => {
  test.each(services)('the service of %s is hardly exposed', (name, unit) => {
    const { stdout, status } = analyze('security', '--offline=true', join(files, name, unit));
    expect(status, stdout).toBe(0);
    const said = /exposure level for .*: (\d+\.\d)/.exec(stdout)?.[1];
    expect(Number(said)).toBeGreaterThan(0);
    expect(Number(said)).toBeLessThanOrEqual(exposureMax);
  });

  test.each(services)('no memory of the service of %s comes to a disk', (name, unit) => {
    const lines = readFileSync(join(files, name, unit), 'utf8').split('\n');
    expect(lines).toEqual(expect.arrayContaining(['LimitCORE=0', 'MemorySwapMax=0']));
  });

  test.each(services)('a flood cannot take the memory of the machine through %s', (name, unit) => {
    expect(readFileSync(join(files, name, unit), 'utf8')).toMatch(/^MemoryMax=[1-9]\d*G$/m);
  });

  const complaints = (units: string[]): string[] =>
    analyze('verify', '--man=no', '--recursive-errors=no', ...units)
      .stderr.split('\n')
      // The programs are not installed on the machine that checks.
      .filter((line) => line !== '' && !/is not executable: No such file/.test(line))
      .filter((line) => line.includes('rackwright'));

  test('have no word that systemd does not know', () => {
    const names = readdirSync(join(root, 'units')).map((name) =>
      join(root, 'units', name.replace('@.', '@eth1.')),
    );
    expect(names).toHaveLength(4);
    expect(complaints(names)).toEqual([]);
  });

  test('bind the boot ports to no interface that there is, until the generator names one', () => {
    const text = readFileSync(join(files, 'agent/rackwright-agent@.socket'), 'utf8');
    const names = text.match(/^BindToDevice=.*$/gm);
    expect(names).toEqual(['BindToDevice=rackwright-none']);
    // A longer name than the kernel takes would be ignored, with every interface open.
    expect(names?.[0]?.replace(/^.*=/, '').length).toBeLessThan(16);
  });

  test('are read: a word that systemd does not know is told', () => {
    const wrong = join(root, 'rackwright-wrong.service');
    writeFileSync(wrong, '[Service]\nExecStart=/bin/true\nWatchdogSeconds=3\n');
    expect(complaints([wrong]).join()).toContain('WatchdogSeconds');
  });
});
