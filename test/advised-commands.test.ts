/**
 * Every command that a text of ours advises is one that the command line takes: its words, its
 * flags, and all that it needs.
 */
import { exitCodes } from '@rackwright/cli';
import { expect, test } from 'vitest';
import { parseCommand } from './parse-command.ts';
import { isTestCode, isTypeScript, readSources, repositoryPaths } from './tidy/sources.ts';

const places = /^(agent|controlplane|packages\/(cli|runner))\/src\//;

/** What is put into a text there and is more than one word. */
const computed: Readonly<Record<string, string>> = {
  action: 'on',
  end: '--goal available --no-retired',
  drops: ' --no-registry-credential x',
  line: 'host retry x',
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
  readonly args: readonly string[];
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
    ([, text = '']) => ({ place: path, args: text.replace(/[.:]$/, '').split(' ') }),
  );
}

const commands = readSources(
  repositoryPaths().filter((path) => places.test(path) && isTypeScript(path) && !isTestCode(path)),
).flatMap(advisedIn);

test('the search finds the advised commands', () => {
  expect(commands.length).toBeGreaterThan(60);
});

test('every command that is advised can be typed as it stands', async () => {
  const refused: string[] = [];
  for (const { place, args } of commands) {
    if (mentions.includes(args.join(' '))) continue;
    const { code, err } = await parseCommand(args);
    if (code === exitCodes.usage) refused.push(`${place}: ${args.join(' ')}: ${err.trim()}`);
  }
  expect(refused).toEqual([]);
});
