import { asMac } from '@rackwright/dhcp';
import type { HostName } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  grubImageScript,
  grubLocalBootScript,
  grubRunnerScript,
  grubStartScript,
  grubWaitingScript,
  grubWord,
} from './grub-script.ts';
import { bootUrls } from './urls.ts';

const mac = asMac('52:54:00:77:00:01');
const urls = bootUrls('10.77.0.1', 8080);
const dollar = '$';

const runner = {
  kernel: 'vmlinuz',
  initrd: 'initrd',
  agentPort: 7443,
  fingerprint: 'AB'.repeat(32),
  kernelArguments: ['console=ttyS0'],
};

function scriptFor(hostName: HostName, bootToken: string): string {
  return grubRunnerScript({
    mac,
    decision: { kind: 'runner', hostUid: 'u1', hostName, operationId: 'u1/1/2/1', bootToken },
    runner,
    agentEndpoint: '10.77.0.1:7443',
    fileUrl: (name) => urls.hostFile(mac, name),
    nowMs: 1_800_000_000_999,
  });
}

/**
 * The words of a line as GRUB's shell reads them (GRUB manual, "Quoting"): text in single quotes is
 * literal, a backslash outside of quotes makes the next character literal. An expansion is shown as
 * `$NAME`; a separator of commands is a word of its own.
 */
function grubWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  const take = (text: string): void => void (word = (word ?? '') + text);
  while (at < line.length) {
    const char = line.charAt(at);
    if (char === "'") {
      const end = line.indexOf("'", at + 1);
      if (end < 0) throw new Error('a quote is not closed');
      take(line.slice(at + 1, end));
      at = end + 1;
    } else if (char === '\\') {
      take(line.charAt(at + 1));
      at += 2;
    } else if (char === ' ' || char === ';') {
      if (word !== undefined) words.push(word);
      word = undefined;
      if (char === ';') words.push(';');
      at += 1;
    } else {
      take(char);
      at += 1;
    }
  }
  return word === undefined ? words : [...words, word];
}

describe('the script of a runner', () => {
  test('loads kernel and ramdisk and tells the runner what iPXE would', () => {
    const [says = '', linux = '', initrd = '', ...rest] = scriptFor('one', 'secret-1').split('\n');
    expect(grubWords(says)).toEqual(['echo', 'Rackwright: one starts the runner']);
    expect(grubWords(linux)).toEqual([
      ...['if', 'linux', `${dollar}rackwright_from/boot/52-54-00-77-00-01/files/vmlinuz`],
      'rackwright.agent=10.77.0.1:7443',
      `rackwright.fingerprint=${'ab'.repeat(32)}`,
      'rackwright.token=secret-1',
      ...['rackwright.mac=52:54:00:77:00:01', 'rackwright.time=1800000000'],
      ...['BOOTIF=01-52-54-00-77-00-01', 'console=ttyS0', ';', 'then'],
    ]);
    const path = `${dollar}rackwright_from/boot/52-54-00-77-00-01/files/initrd`;
    const words = ['if', 'initrd', path, ';', 'then', 'boot', ';', 'fi'];
    expect(grubWords(initrd)).toEqual(words);
    expect(rest).toEqual(['fi', '']);
  });

  test('refuses a token that is more than a plain word, and does not repeat it', () => {
    for (const token of ['', 'a b', 'a\nhalt', `${dollar}x`, "a'b"]) {
      expect(() => scriptFor('one', token)).toThrow('of u1/1/2/1 is not a plain word');
    }
  });

  test('lets nothing of a name reach GRUB that it could take for a command', () => {
    const [says = ''] = scriptFor(`a'; halt ${dollar}x`, 't').split('\n');
    expect(grubWords(says)).toEqual(['echo', 'Rackwright: a___halt__x starts the runner']);
  });
});

test('any word comes back from GRUB’s shell as it went in, as one word', () => {
  // All pairs of what means something there, around and inside of words.
  const alphabet = [...` ;&|<>{}()[]"'\\${dollar}#!*?~=,%a-é`];
  for (const one of alphabet) {
    for (const two of alphabet) {
      for (const text of [`${one}${two}`, `a${one}b${two}`, `${one}b${two}c`, `'${one}${two}'`]) {
        expect(grubWords(`linux ${grubWord(text)} next`)).toEqual(['linux', text, 'next']);
      }
    }
  }
});

test('no line of GRUB’s holds a control character', () => {
  const controls = [...Array.from({ length: 32 }, (_, code) => code), 127];
  for (const code of controls) {
    const text = `a${String.fromCharCode(code)}b`;
    expect(() => grubWord(text)).toThrow('a control character');
  }
});

test('an image’s kernel and ramdisks are loaded in order, and its words stay whole', () => {
  const [kernel, first, second] = ['1', '2', '3'].map((digit) => digit.repeat(64));
  const script = grubImageScript({
    mac,
    hostName: 'one',
    urls,
    boot: {
      kind: 'ready',
      kernel: kernel ?? '',
      initrds: [first ?? '', second ?? ''],
      kernelArguments: ['root=live:x;y', `a${dollar}{b}`],
      seedPath: '/seed/u1.3/token/',
    },
  });
  const lines = script.split('\n');
  expect(grubWords(lines[1] ?? '')).toEqual([
    ...['if', 'linux', `${dollar}rackwright_from/v2/blobs/sha256/${kernel}`],
    ...['root=live:x;y', `a${dollar}{b}`, 'BOOTIF=01-52-54-00-77-00-01'],
    ...['ds=nocloud-net;s=http://10.77.0.1:8080/seed/u1.3/token/', ';', 'then'],
  ]);
  const blob = `${dollar}rackwright_from/v2/blobs/sha256/`;
  expect(grubWords(lines[2] ?? '').slice(0, 4)).toEqual([
    ...['if', 'initrd', `${blob}${first}`, `${blob}${second}`],
  ]);
  expect(lines.slice(-3)).toEqual(['sleep 5', 'set rackwright_tries=', '']);
});

test('a host that waits for its image never runs out of tries', () => {
  const lines = grubWaitingScript('one', `it's; on ${dollar}its way`).split('\n');
  expect(grubWords(lines[0] ?? '')[1]).toBe(
    'Rackwright: one waits for its image: it_s_ on _its way',
  );
  expect(lines.slice(1)).toEqual(['sleep 5', 'set rackwright_tries=', '']);
});

test('the first script fetches the host’s own by TFTP, three times', () => {
  const lines = grubStartScript('http://10.77.0.1:8080').split('\n');
  expect(lines.slice(0, 5)).toEqual([
    'set rackwright_from=(tftp,10.77.0.1)',
    'set rackwright_tries=',
    `while [ "${dollar}rackwright_tries" != xxx ]; do`,
    `  set rackwright_tries="${dollar}{rackwright_tries}x"`,
    `  source ${dollar}rackwright_from/boot/${dollar}net_default_mac/grub.cfg`,
  ]);
});

test('a host without a grant is sent to its disk, as is one whose scripts came to nothing', () => {
  const disk = grubLocalBootScript().split('\n').slice(1).join('\n');
  expect(disk).toContain('chainloader ($disk)$loader');
  expect(grubStartScript('http://10.77.0.1:8080').endsWith(`done\n${disk}`)).toBe(true);
});
