import { asMac } from '@rackwright/dhcp';
import type { HostName } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  uBootImageScript,
  uBootRunnerScript,
  uBootStartScript,
  uBootWaitingScript,
  uBootWord,
} from './u-boot-script.ts';
import { bootUrls } from './urls.ts';

const mac = asMac('52:54:00:77:00:01');
const urls = bootUrls('10.77.0.1', 8080);
const [kernel, initrd] = ['1'.repeat(64), '2'.repeat(64)];

const runner = {
  kernel: 'vmlinuz',
  initrd: 'initrd',
  agentPort: 7443,
  fingerprint: 'AB'.repeat(32),
  kernelArguments: ['console=ttyAMA0'],
};

function scriptFor(hostName: HostName, bootToken: string, kernelArguments = ['console=ttyAMA0']) {
  return uBootRunnerScript({
    mac,
    decision: { kind: 'runner', hostUid: 'u1', hostName, operationId: 'u1/1/2/1', bootToken },
    runner: { ...runner, kernelArguments },
    agentEndpoint: '10.77.0.1:7443',
    fileUrl: (name) => urls.hostFile(mac, name),
    nowMs: 1_800_000_000_999,
  });
}

function imageFor(kernelArguments: readonly string[], initrds: readonly string[] = [initrd]) {
  const seedPath = '/seed/u1.3/token/';
  const boot = { kind: 'ready', kernel, initrds, kernelArguments, seedPath } as const;
  return uBootImageScript({ mac, hostName: 'one', urls, boot });
}

/** The lines by their keyword; throws when one stands there twice. */
function valuesOf(script: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of script.trimEnd().split('\n')) {
    const [, keyword = '', value = ''] = /^ *(menu label|[a-z]+) (.*)$/.exec(line) ?? [];
    if (keyword === '' || values.has(keyword)) throw new Error(`"${line}"`);
    values.set(keyword, value);
  }
  return values;
}

describe('the configuration of a runner', () => {
  test('loads kernel and ramdisk and tells the runner what iPXE would', () => {
    expect([...valuesOf(scriptFor('one', 'secret-1'))]).toEqual([
      ['default', 'rackwright'],
      ['label', 'rackwright'],
      ['menu label', 'Rackwright: one starts the runner'],
      ['kernel', '/boot/52-54-00-77-00-01/files/vmlinuz'],
      // Before the words: U-Boot would look for "initrd=" in them.
      ['initrd', '/boot/52-54-00-77-00-01/files/initrd'],
      [
        'append',
        [
          'rackwright.agent=10.77.0.1:7443',
          `rackwright.fingerprint=${'ab'.repeat(32)}`,
          'rackwright.token=secret-1',
          ...['rackwright.mac=52:54:00:77:00:01', 'rackwright.time=1800000000'],
          ...['BOOTIF=01-52-54-00-77-00-01', 'console=ttyAMA0'],
        ].join(' '),
      ],
    ]);
  });

  test('refuses a token that is more than a plain word, and does not repeat it', () => {
    for (const token of ['', 'a b', 'a\nlabel b', '$x', "a'b"]) {
      expect(() => scriptFor('one', token)).toThrow('of u1/1/2/1 is not a plain word');
    }
  });

  test('lets no name leave its line or its label', () => {
    const name = 'a\nlabel x\n  kernel evil #${serverip}';
    expect(valuesOf(scriptFor(name, 't')).get('menu label')).toBe(
      'Rackwright: a_label_x___kernel_evil____serverip_ starts the runner',
    );
  });
});

test('no word holds a control character, and none that U-Boot would change', () => {
  const controls = [...Array.from({ length: 32 }, (_, code) => code), 127, 0x85];
  for (const code of controls) {
    const text = `a${String.fromCharCode(code)}b`;
    expect(() => uBootWord(text)).toThrow('a control character');
    expect(() => scriptFor('one', 't', [text])).toThrow('a control character');
    expect(() => imageFor([text])).toThrow('a control character');
  }
  for (const text of ['a$b', '${serverip}', '$(x)', 'a\\b', "a'b", '#a']) {
    expect(() => imageFor([text])).toThrow('a word for U-Boot holds one of');
  }
  for (const text of ['root=LABEL=x', 'a#b', '"a', 'dyndbg=file:x;y', 'é', '-']) {
    expect(uBootWord(text)).toBe(text);
  }
});

describe('the configuration of an image', () => {
  test('loads its kernel and its ramdisk, and its words stay whole', () => {
    const values = valuesOf(imageFor(['root=live:x;y', 'initrd=mine']));
    expect(values.get('kernel')).toBe(`/v2/blobs/sha256/${kernel}`);
    expect(values.get('initrd')).toBe(`/v2/blobs/sha256/${initrd}`);
    const seed = 'ds=nocloud-net;s=http://10.77.0.1:8080/seed/u1.3/token/';
    const text = `root=live:x;y initrd=mine BOOTIF=01-52-54-00-77-00-01 ${seed}`;
    expect(values.get('append')).toBe(text);
  });

  test('has no ramdisk when the image has none, and no word that U-Boot takes for one', () => {
    expect(valuesOf(imageFor(['quiet'], [])).has('initrd')).toBe(false);
    expect(() => imageFor(['initrd=mine'], [])).toThrow('U-Boot takes a word with "initrd="');
  });

  test('is refused for an image with two ramdisks', () => {
    expect(() => imageFor([], [initrd, kernel])).toThrow('one ramdisk, and the image has 2');
  });
});

test('a host that waits for its image has a configuration that boots nothing', () => {
  const script = uBootWaitingScript('one', "it's\nkernel x; on ${x}");
  expect([...valuesOf(script)]).toEqual([
    ['default', 'rackwright'],
    ['label', 'rackwright'],
    ['menu label', 'Rackwright: one waits for its image: it_s_kernel x_ on __x_'],
  ]);
});

test('the first script boots as long as there is a configuration', () => {
  expect(uBootStartScript().split('\n').slice(1)).toEqual([
    'setenv bootfile boot.scr.uimg',
    'while pxe get; do',
    '  pxe boot',
    '  sleep 5',
    'done',
    '',
  ]);
});
