import type { Exec, ExecRequest, ExecResult } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { callIpmitool, type IpmiTarget } from './ipmitool.ts';
import { defaultIpmitoolOptions } from './options.ts';
import { refusalOf } from './refusal.ts';

const target: IpmiTarget = {
  address: '192.0.2.1',
  port: 623,
  cipherSuite: 3,
  user: 'admin',
  password: 'hidden-word',
  credential: 'credentials/rack@1',
};

function recording(result: ExecResult): Exec & { readonly requests: ExecRequest[] } {
  const requests: ExecRequest[] = [];
  return {
    requests,
    run: async (request) => {
      requests.push(request);
      return result;
    },
  };
}

const exited = (code: number, stderr: string, stdout = ''): ExecResult => ({
  kind: 'exited',
  code,
  stdout,
  stderr,
});

const call = (exec: Exec, changes: Partial<IpmiTarget> = {}) =>
  callIpmitool(exec, defaultIpmitoolOptions, { ...target, ...changes }, ['raw', '0x00', '0x01']);

describe('a call of ipmitool', () => {
  test('has the password on standard input and nowhere else', async () => {
    const exec = recording(exited(0, '', ' 01 00 00\n'));
    expect(await call(exec)).toEqual({ kind: 'ok', value: ' 01 00 00\n' });
    const [request] = exec.requests;
    expect(request?.stdin).toBe('hidden-word');
    expect(JSON.stringify(request?.args)).not.toContain('hidden-word');
    expect(request?.args.slice(2).join(' ')).toBe(
      'ipmitool -v -I lanplus -C 3 -H 192.0.2.1 -p 623 -U admin -N 2 -R 2 -f /dev/stdin ' +
        'raw 0x00 0x01',
    );
  });

  test('is not made with a credential or an address that ipmitool would misread', async () => {
    const exec = recording(exited(0, ''));
    const types = [];
    for (const changes of [
      { password: 'x'.repeat(21) },
      { password: 'two\nlines' },
      { user: 'x'.repeat(17) },
      { address: '-H' },
      { address: 'a b' },
      { address: '' },
    ]) {
      const result = await call(exec, changes);
      types.push(result.kind === 'failed' ? result.type : result.kind);
    }
    expect(types).toEqual([
      ...['invalidCredential', 'invalidCredential', 'invalidCredential'],
      ...['address', 'address', 'address'],
    ]);
    expect(exec.requests).toEqual([]);
  });
});

describe('a FRU that ipmitool prints with exit code 0', () => {
  const printed = ' Board Serial          : BRD-1\n';
  const print = (stderr: string, stdout = printed) =>
    callIpmitool(recording(exited(0, stderr, stdout)), defaultIpmitoolOptions, target, [
      ...['fru', 'print', '0'],
    ]);

  test.each([
    ['trouble', 'FRU Read failed\n', printed],
    ['trouble', 'FRU Read failed: Timeout\n', printed],
    ['busy', 'FRU Read failed: Node busy\n', printed],
    ['trouble', '', ' Device not present (Unknown (0x81))\n'],
    ['unreachable', '', ' Device not present (No Response)\n'],
  ])('is incomplete, by %s, after "%s" and "%s"', async (reason, stderr, stdout) => {
    expect(await print(stderr, stdout)).toMatchObject({ kind: 'transient', reason });
  });

  test('stands where the rest is missing for good', async () => {
    const rest = 'FRU Read failed: Parameter out of range\n';
    expect(await print(rest)).toEqual({ kind: 'ok', value: printed });
  });

  test('stands whatever words its texts are made of', async () => {
    const odd = ' Product Name          : FRU Read failed\n Board Mfg : Device not present (x)\n';
    expect(await print('', odd)).toEqual({ kind: 'ok', value: odd });
  });
});

// Captured from ipmitool 1.8.19 with -v; the first seven against ipmi_sim 2.0.33 or nothing.
const noSession = 'Error: Unable to establish IPMI v2 / RMCP+ session\n';
const captured: readonly (readonly [string, string])[] = [
  ['authentication', `Loading IANA PEN Registry...\n> RAKP 2 HMAC is invalid\n${noSession}`],
  ['authentication', `RAKP 2 message indicates an error : unauthorized name\n${noSession}`],
  [
    'unreachable',
    'Get Auth Capabilities error\n' +
      `Error issuing Get Channel Authentication Capabilities request\n${noSession}`,
  ],
  [
    'cipherSuite',
    `Error in open session response message : invalid authentication algorithm\n\n${noSession}`,
  ],
  ['address', `Address lookup for nosuch.invalid failed\nCould not open socket!\n${noSession}`],
  [
    'unsupported',
    'Unable to send RAW command (channel=0x0 netfn=0x6 lun=0x0 cmd=0x8 rsp=0xc1): ' +
      'Invalid command\n',
  ],
  [
    'toolMissing',
    'Unable to open file /dev/stdin: No such device or address\n' +
      'Unable to open password file /dev/stdin\n',
  ],
  // By the specification's completion codes and RAKP status words; not captured.
  ['privilege', 'Unable to send RAW command (rsp=0xd4): Insufficient privilege level\n'],
  ['busy', 'Error in open session response message : insufficient resources for session\n'],
  ['busy', 'Unable to send RAW command (rsp=0xc0): Node busy\n'],
  ['rejected', 'Unable to send RAW command (rsp=0xd5): Command not supported in present state\n'],
  ['trouble', 'Unable to send RAW command (rsp=0xc3): Timeout\n'],
  ['trouble', 'Unable to send RAW command (rsp=0xce): Command response could not be provided\n'],
  ['trouble', 'Unable to send RAW command (rsp=0xd2): BMC initialization in progress\n'],
  ['trouble', ' Device not present (Timeout)\n'],
  // ipmitool 1.8.19, `raw` and `fru print`, without an answer in an open session.
  ['unreachable', 'Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x1)\n'],
  ['unreachable', ' Device not present (No Response)\n'],
  ['rejected', ' Device not present (Requested sensor, data, or record not found)\n'],
  ['trouble', ' Device not present (Unknown (0x81))\n'],
  ['trouble', 'FRU Read failed\n'],
  ['trouble', 'FRU Read failed: Timeout\n'],
  ['trouble', 'FRU Read failed: Unknown (0x81)\n'],
  ['rejected', 'FRU Read failed: Parameter out of range\n'],
  // A FRU that nobody has written.
  ['rejected', ' Unknown FRU header version 0xff\n'],
  ['rejected', ' Invalid FRU size 0\n'],
  ['malformed', 'something else\n'],
];

describe('the words of ipmitool', () => {
  for (const [meaning, text] of captured) {
    test(`"${text.trim().split('\n')[0]}" mean ${meaning}`, () => {
      const refusal = refusalOf(exited(1, text), '');
      expect(refusal.kind === 'failed' ? refusal.type : refusal.reason).toBe(meaning);
    });
  }

  test('are kept without what -v says on every call', () => {
    const chatty =
      'Loading IANA PEN Registry...\n' +
      'Running Get VSO Capabilities my_addr 0x20, transit 0, target 0x20\n' +
      'Invalid completion code received: Invalid command\n' +
      'Discovered IPMB address 0x0\n' +
      'RAW REQ (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 data_len=1)\n' +
      'RAW REQUEST (1 bytes)\n 01 \n' +
      'Unable to send RAW command (rsp=0xd5): Command not supported in present state\n';
    expect(refusalOf(exited(1, chatty), '')).toMatchObject({
      type: 'rejected',
      backendText: 'Unable to send RAW command (rsp=0xd5): Command not supported in present state',
    });
  });

  test('never carry the password on', () => {
    const refusal = refusalOf(exited(1, 'odd hidden-word odd'), 'hidden-word');
    expect(refusal.backendText).toBe('odd *** odd');
  });

  test('are absent when the tool is missing or hangs', () => {
    expect(refusalOf(exited(127, '/bin/sh: 1: ipmitool: not found'), '')).toMatchObject({
      type: 'toolMissing',
    });
    expect(refusalOf({ kind: 'notStarted', message: 'ENOENT' }, '')).toMatchObject({
      type: 'toolMissing',
    });
    expect(refusalOf({ kind: 'timedOut', stdout: '', stderr: '' }, '')).toMatchObject({
      reason: 'unreachable',
    });
  });
});
