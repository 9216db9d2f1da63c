/**
 * Devices that erase themselves, played by their tools: what hdparm, nvme-cli and sg3_utils print,
 * by their own source and by the specifications. No device here offers any of it.
 */
import type { DeviceFacts, SelfErasure } from '@rackwright/erasure';
import type { Exec, ExecRequest } from '@rackwright/platform';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { identityText } from './identity.fixture.ts';
import { sanitizeLog } from './nvme-sanitize.fixture.ts';
import {
  eraseItself,
  isCommandSupported,
  parseAtaSanitize,
  parseSanitizeSense,
  readOwnWork,
} from './self-erase.ts';

const open = { name: 'sda', descriptor: 20 };
const instantly = async (): Promise<void> => {};

function disk(change: Partial<DeviceFacts> = {}): DeviceFacts {
  return {
    ...{ name: 'sda', serial: 'S', transport: 'sata', model: 'M', wwn: '', firmware: '' },
    ...{ sizeBytes: 1, rotational: false, removable: false, readOnly: false },
    ...{ discardSupported: false, raidVolume: false, holders: [], regions: [], partitions: [] },
    sanitize: {
      ...{ blockErase: true, cryptoScramble: true, overwrite: true },
      ...{ ataSecurityErase: true, ataEnhancedErase: true },
    },
    ...change,
  };
}

const nvme = disk({
  transport: 'nvme',
  nvme: { formatSupported: false, cryptoEraseSupported: false, formatsAllNamespaces: false },
});

/** Tools that answer by their arguments; the calls are kept. */
function tools(answer: (asked: string, times: number) => string | undefined) {
  const asked: string[] = [];
  const exec: Exec = {
    run: async ({ file, args, descriptors }: ExecRequest) => {
      const line = [file, ...args].join(' ');
      expect(descriptors).toEqual([20]);
      asked.push(line);
      const stdout = answer(line, asked.filter((each) => each === line).length);
      return {
        kind: 'exited',
        code: stdout === undefined ? 1 : 0,
        stdout: stdout ?? '',
        stderr: '',
      };
    },
  };
  return { exec, asked };
}

const erase = (exec: Exec, device: DeviceFacts, method: SelfErasure) =>
  eraseItself(exec, device, open, method, instantly);

test('the runner starts NVMe sanitize on the held descriptor and waits for its end', async () => {
  const { exec, asked } = tools((line, times) => {
    if (line.startsWith('nvme sanitize ')) return '';
    return JSON.stringify(sanitizeLog('status', times < 3 ? 2 : 1));
  });
  const lines = await erase(exec, nvme, 'sanitizeCrypto');
  expect(asked[0]).toBe('nvme sanitize /dev/fd/3 --sanact=4');
  expect(asked).toHaveLength(4);
  expect(lines.at(-1)).toBe('sanitize: completed, state 1');
});

test.each([
  ['failed', sanitizeLog('status', 3)],
  ['without a status', {}],
])('an NVMe sanitize that ends %s is an error', async (_how, log) => {
  const { exec } = tools((line) => (line.includes('sanitize-log') ? JSON.stringify(log) : ''));
  await expect(erase(exec, nvme, 'sanitizeBlock')).rejects.toThrow(/sanitize/);
});

const ata = identityText({ 27: 0x4143, 59: 0xf000, 82: 2, 128: 0x0001 });
const locked = identityText({ 27: 0x4143, 82: 2, 128: 0x0003 });

test('ATA sanitize is started and polled until the disk is idle without error', async () => {
  const { exec, asked } = tools((line, times) => {
    if (line.includes('--Istdout')) return ata;
    if (!line.includes('--sanitize-status')) return 'Operation started in background';
    return times < 2
      ? '    State:    SD2 Sanitize operation In Process\n    Progress: 0x8000 (50%)\n'
      : '    State:    SD0 Sanitize Idle\n    Last Sanitize Operation Completed Without Error\n';
  });
  await erase(exec, disk(), 'sanitizeOverwrite');
  expect(asked[1]).toBe(
    'hdparm --yes-i-know-what-i-am-doing --sanitize-overwrite-passes 1 ' +
      '--sanitize-overwrite hex:00000000 /dev/fd/3',
  );
  expect(asked.filter((line) => line.includes('status'))).toHaveLength(2);
});

test('SCSI sanitize is started, and one that still runs does not count as ended', async () => {
  const scsi = (said: string) =>
    tools((line) => (line.startsWith('sg_requests') ? said : line.includes('hdparm') ? '' : 'ok'));
  const good = scsi('');
  await erase(good.exec, disk(), 'sanitizeBlock');
  expect(good.asked).toContain('sg_sanitize --quick --block /dev/fd/3');
  const slow = scsi('Progress indication: 12.50% done');
  await expect(erase(slow.exec, disk(), 'sanitizeBlock')).rejects.toThrow(/in progress \(12 %\)/);
});

test('a SCSI sanitize without an answer on its status does not count as ended', async () => {
  const { exec } = tools((line) => (line.includes('hdparm') ? '' : 'ok'));
  const mute: Exec = {
    run: (request) =>
      request.file === 'sg_requests'
        ? Promise.resolve({ kind: 'timedOut', stdout: '', stderr: '' })
        : exec.run(request),
  };
  await expect(erase(mute, disk(), 'sanitizeBlock')).rejects.toThrow(
    'does not say whether its sanitize has ended',
  );
});

test('a secure erase sets a password, and succeeds only by the state the disk shows', async () => {
  const states = [ata, ata, locked, ata];
  const { exec, asked } = tools((line) => (line.includes('Istdout') ? states.shift() : ''));
  await erase(exec, disk(), 'ataEnhancedErase');
  const writes = asked.filter((line) => !line.includes('Istdout'));
  expect(writes.map((line) => line.replace(/^.*--user-master u /, ''))).toEqual([
    '--security-set-pass rackwright /dev/fd/3',
    '--security-erase-enhanced rackwright /dev/fd/3',
  ]);
});

test('after a failed erase the password is removed, or reported as left', async () => {
  const removed = [ata, ata, locked, locked, ata];
  const first = tools((line) =>
    line.includes('Istdout') ? removed.shift() : line.includes('-erase ') ? undefined : '',
  );
  await expect(erase(first.exec, disk(), 'ataSecurityErase')).rejects.toThrow(/exit 1/);
  expect(first.asked.some((line) => line.includes('--security-disable rackwright'))).toBe(true);
  const stuck = [ata, ata, locked, locked, locked];
  const second = tools((line) => (line.includes('Istdout') ? stuck.shift() : ''));
  await expect(erase(second.exec, disk(), 'ataSecurityErase')).rejects.toThrow(
    /its password is still "rackwright"/,
  );
});

test('the runner sends no erase to a disk that is frozen', async () => {
  const frozen = identityText({ 27: 0x4143, 82: 2, 128: 0x0009 });
  const { exec, asked } = tools((line) => (line.includes('Istdout') ? frozen : ''));
  await expect(erase(exec, disk(), 'ataSecurityErase')).rejects.toThrow(/frozen, not disabled/);
  expect(asked.every((line) => line.includes('Istdout'))).toBe(true);
});

test('a self-erase under way is reported; a disk without one is not asked', async () => {
  const running = tools((line) =>
    line.includes('Istdout') ? ata : '    State:    SD2 Sanitize\n    Progress: 0x1 (7%)',
  );
  expect(await readOwnWork(running.exec, disk(), open)).toEqual({
    ...{ kind: 'running', text: 'a sanitize is in progress (7 %)' },
  });
  const silent = tools(() => undefined);
  expect(await readOwnWork(silent.exec, { ...disk(), sanitize: undefined } as never, open)).toBe(
    undefined,
  );
  expect(silent.asked).toEqual([]);
});

/** What sg_requests prints of sense data. */
const sense = (key: string, additional: string, more = '') =>
  'Decode parameter data as sense data:\n' +
  `Fixed format, current; Sense key: ${key}\nAdditional sense: ${additional}\n${more}`;
const stateFailed =
  'SANITIZE device error reason: Last Sanitize Command completed unsuccessfully\n' +
  'Drive in SD3 Sanitize Operation Failed state\n';

test.each<[string, string, string, object | undefined]>([
  ['SCSI: failed', '', sense('Medium Error', 'Sanitize command failed'), { kind: 'failed' }],
  [
    'SCSI: runs',
    '',
    sense(
      'Not Ready',
      'Logical unit not ready, sanitize in progress',
      '  Progress indication: 12.50%\n',
    ),
    { kind: 'running', text: 'a sanitize is in progress (12 %)' },
  ],
  ['SCSI: at rest', '', sense('No Sense', 'No additional sense information'), undefined],
  ['ATA: failed', ata, stateFailed, { kind: 'failed' }],
  ['ATA: never begun', ata, '    State:    SD0 Sanitize Idle\n', undefined],
])('a sanitize that has failed is told apart from one that runs (%s)', async (...row) => {
  const [, identity, said, work] = row;
  const { exec, asked } = tools((line) => (line.includes('Istdout') ? identity : said));
  const found = await readOwnWork(exec, disk(), open);
  if (work === undefined) expect(found).toBeUndefined();
  else expect(found).toMatchObject(work);
  // With it sg_requests would not print why a sanitize has failed.
  expect(asked.join(' ')).not.toContain('--progress');
});

test('support, status and sense are read, and an unknown answer is no success', () => {
  expect(isCommandSupported('  Command is supported [conforming to SCSI standard]')).toBe(true);
  expect(isCommandSupported('Report supported operation codes: Illegal request')).toBe(false);
  expect(isCommandSupported('  Command is NOT supported')).toBe(false);
  expect(parseAtaSanitize('State:    SD1 Sanitize Frozen').kind).toBe('unknown');
  expect(parseAtaSanitize('State:    SD0 Sanitize Idle').kind).toBe('unknown');
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(parseAtaSanitize(text).kind).toBe('unknown');
      expect(parseSanitizeSense(text)).toBeUndefined();
    }),
  );
});
