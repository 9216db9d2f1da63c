import { expect, test } from 'vitest';
import { defaultStateFolder, readConfig } from './config.ts';

const fingerprint = 'ab'.repeat(32);
const line =
  'initrd=initrd console=ttyS0 rackwright.agent=192.0.2.1:8443 ' +
  `rackwright.fingerprint=${fingerprint} rackwright.token=t0ken rackwright.mac=52:54:00:00:00:01`;

function problems(args: readonly string[], commandLine = line): readonly string[] {
  const read = readConfig(args, commandLine);
  return read.kind === 'invalid' ? read.problems : [];
}

test('the reader reads the kernel command line of the boot script', () => {
  expect(readConfig([], line)).toEqual({
    kind: 'config',
    config: {
      agentHost: '192.0.2.1',
      agentPort: 8443,
      fingerprint,
      bootToken: 't0ken',
      stateFolder: defaultStateFolder,
      lab: { verdictSwitchedOff: false, without: new Set() },
    },
  });
});

test('the reader takes an IPv6 address in brackets', () => {
  const read = readConfig([], line.replace('192.0.2.1', '[2001:db8::1]'));
  expect(read).toMatchObject({ config: { agentHost: '2001:db8::1', agentPort: 8443 } });
});

test('the reader reads the settings of a software machine and of the laboratory', () => {
  const args = [
    '--cmdline',
    `${line} rackwright.lab.verdict=off rackwright.lab.crash=runner.begun:2`,
  ];
  const more = ['--file-disks', '/d', '--dmi', '/m', '--state-dir', '/s'];
  expect(readConfig([...args, ...more], '')).toMatchObject({
    config: {
      stateFolder: '/s',
      software: { diskFolder: '/d', dmiFile: '/m' },
      lab: { verdictSwitchedOff: true, crashAt: { name: 'runner.begun', occurrence: 2 } },
    },
  });
});

test('everything that is missing or wrong is named at once', () => {
  expect(problems([], 'quiet')).toEqual([
    'rackwright.agent is missing; it must be HOST:PORT',
    'rackwright.fingerprint is missing; it must be a SHA-256 in lower-case hex',
    'rackwright.token is missing; it must be the token of the boot script',
  ]);
  expect(problems(['--disks', 'x'])[0]).toMatch(/^"--disks" is not understood/);
  expect(problems([], `${line} rackwright.lab.verdit=off`)[0]).toMatch(/lab\.verdit is unknown/);
  expect(problems([], `${line} rackwright.lab.verdict=no`)[0]).toMatch(/must be on or off/);
});

test('checks that the laboratory switches off are read, and unknown ones refused', () => {
  const word = `${line} rackwright.lab.without=wholeRead,heldDevice`;
  expect(readConfig([], word)).toMatchObject({
    config: { lab: { without: new Set(['heldDevice', 'wholeRead']) } },
  });
  expect(problems([], `${line} rackwright.lab.without=wholeread`)[0]).toMatch(
    /"wholeread" is none/,
  );
});

test('the reader refuses half a software machine, which would use the real disks', () => {
  expect(problems(['--dmi', '/m'])).toEqual(['--file-disks and --dmi go together']);
});

test('the reader ignores words of a newer agent', () => {
  expect(problems([], `${line} rackwright.future=1`)).toEqual([]);
});
