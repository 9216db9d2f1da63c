/**
 * Every command that a text of ours advises is one that the command line takes: its words, its
 * flags, and all that it needs.
 */
import { type CommandIo, exitCodes, runCli } from '@rackwright/cli';
import { nodeClock } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { isTestCode, isTypeScript, readSources, repositoryPaths } from './tidy/sources.ts';

const places = /^(agent|controlplane|packages\/(cli|runner))\/src\//;

/** What stands for a value, where the command would refuse the word itself. */
const values: readonly (readonly [RegExp, string])[] = [
  [/^N\/SECONDS$/, '1/60'],
  [/^(N|SECONDS)$/, '1'],
  [/^(ADDRESS:PORT|ADDRESS:8443)$/, '10.0.0.1:8443'],
  [/^ADDRESS$/, '10.0.0.1'],
  [/^MAC$/, '52:54:00:00:00:01'],
  [/^STEP$/, 'management.clear_event_log'],
  [/^ROLE$/, 'viewer'],
  [/^min-size=SIZE$/, 'min-size=480GB'],
];

/** What is put into a text there and is more than one word. */
const computed: Readonly<Record<string, string>> = {
  action: 'on',
  end: '--goal available --no-retired',
  drops: ' --no-registry-credential x',
  words: 'host retry x',
  state: 'on',
  flags: '--bmc-network 10.0.0.0/24',
  hash: '0a'.repeat(32),
  ids: 'x x',
  macs: '--mac 52:54:00:00:00:01',
  reason: ' --boot-old-disk x',
};

/** What names a command, or is none, and is not to be typed so. */
const mentions: readonly string[] = [
  'apply -f',
  'context set',
  'control plane',
  'get',
  'host resume',
  'host update',
  'login',
  'secrets key\\0',
];

interface Advised {
  readonly place: string;
  readonly words: readonly string[];
}

/** The commands in the texts of a file; in comments there are none that anybody is told. */
function advisedIn({ path, text }: { readonly path: string; readonly text: string }): Advised[] {
  const lines = text
    .split('\n')
    .map((line) => (/^\s*(\/?\*|\/\/)/.test(line) ? '' : line))
    .join('\n')
    .replaceAll(/['`] \+\s*['`]/g, '')
    .replaceAll(/\$\{([^{}]*)\}/g, (_, source: string) => computed[source] ?? 'x')
    .replaceAll(/\\[`n]/g, '\n');
  return [...lines.matchAll(/\brackwright ((?:[a-z][a-z-]*)(?: [^\s'"`;,()“”…]+)*)/g)].map(
    ([, words = '']) => ({ place: path, words: words.replace(/[.:]$/, '').split(' ') }),
  );
}

const commands = readSources(
  repositoryPaths().filter((path) => places.test(path) && isTypeScript(path) && !isTestCode(path)),
).flatMap(advisedIn);

/** Runs it as far as the connection that it would make. */
async function parsed(words: readonly string[]): Promise<{ code: number; err: string }> {
  let err = '';
  const files = ['FILE', 'token', 'ca'];
  const world: CommandIo = {
    environment: {
      RACKWRIGHT_SERVER: 'rackwright.example.org:7443',
      RACKWRIGHT_TOKEN_FILE: 'token',
      RACKWRIGHT_CA_FILE: 'ca',
    },
    homeFolder: '/nowhere',
    clock: nodeClock(),
    random: { fraction: () => 0 },
    readFile: async (path) => (files.includes(path) ? new TextEncoder().encode('x') : undefined),
    writeFile: async () => {},
    writePrivateFile: async () => undefined,
    removeFile: async () => undefined,
    readInput: async () => 'password',
    askHidden: async () => 'password',
    ask: async () => 'yes',
    connect: () => {
      throw new Error('would have connected');
    },
    out: { write: () => {}, columns: undefined },
    err: {
      write: (text) => {
        err += text;
      },
      columns: undefined,
    },
    signal: new AbortController().signal,
  };
  const args = words.map((word) => values.find(([shape]) => shape.test(word))?.[1] ?? word);
  return { code: await runCli(args, world), err };
}

test('finds what is advised', () => {
  expect(commands.length).toBeGreaterThan(60);
});

test('every command that is advised can be typed as it stands', async () => {
  const refused: string[] = [];
  for (const { place, words } of commands) {
    if (mentions.includes(words.join(' '))) continue;
    const { code, err } = await parsed(words);
    if (code === exitCodes.usage) refused.push(`${place}: ${words.join(' ')}: ${err.trim()}`);
  }
  expect(refused).toEqual([]);
});
