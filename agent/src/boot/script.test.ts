import { asMac } from '@rackwright/dhcp';
import type { HostName } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { localBootScript, runnerScript } from './script.ts';

const runner = {
  kernel: 'vmlinuz',
  initrd: 'initrd',
  agentPort: 7443,
  fingerprint: 'AB'.repeat(32),
  kernelArguments: ['console=ttyS0', 'panic=60'],
};

function scriptFor(hostName: HostName, bootToken: string): string {
  return runnerScript({
    mac: asMac('52:54:00:77:00:01'),
    decision: { kind: 'runner', hostUid: 'u1', hostName, operationId: 'u1/1/2/1', bootToken },
    runner,
    agentEndpoint: '10.77.0.1:7443',
    fileUrl: (name) => `http://10.77.0.1/f/${name}`,
    nowMs: 1_800_000_000_999,
  });
}

test('the script loads kernel and ramdisk and names agent, host and token to the runner', () => {
  expect(scriptFor('one', 'secret-1').split('\n')).toEqual([
    '#!ipxe',
    'echo Rackwright: one starts the runner',
    'set attempt:int32 0',
    ':fetch',
    [
      'kernel http://10.77.0.1/f/vmlinuz initrd=initrd rackwright.agent=10.77.0.1:7443',
      `rackwright.fingerprint=${'ab'.repeat(32)} rackwright.token=secret-1`,
      'rackwright.mac=52:54:00:77:00:01 rackwright.time=1800000000',
      'BOOTIF=01-52-54-00-77-00-01 console=ttyS0 panic=60',
      '&& initrd --name initrd http://10.77.0.1/f/initrd && boot ||',
    ].join(' '),
    'inc attempt',
    // The braces are iPXE's, not ours.
    ['iseq $', '{attempt} 3 && exit 1 ||'].join(''),
    'imgfree',
    'sleep 2',
    'goto fetch',
    '',
  ]);
});

test('no part of a name reaches iPXE that iPXE could take for a command', () => {
  expect(scriptFor('a && shell $\n{x}', 't').split('\n')[1]).toBe(
    'echo Rackwright: a____shell____x_ starts the runner',
  );
});

test('a token that is no plain word is refused, and the error does not repeat it', () => {
  for (const token of ['', 'a b', 'a\nshell', '${x}', 'a&&b']) {
    expect(() => scriptFor('one', token)).toThrow('the boot token of u1/1/2/1 is not a plain word');
  }
});

test('the script sends a host to its disk with a failure, so that UEFI goes on', () => {
  expect(localBootScript()).toMatch(/^#!ipxe\n(.*\n)*exit 1\n$/);
});
