import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseGuide } from './guide.ts';
import { shellWords } from './shell-words.ts';

test('the reader reads headings, commands of code blocks and what comments say of them', () => {
  const page = `# Replace a disk

Some text with \`rackwright host list\` in it.

    rackwright host hold h1 --scope work --reason 'a disk'   # first
    npx rackwright host create h9 --rack r1 \\
      --goal manageable
<!-- demo: swap h1 -->
<!-- demo: next fail expect "no plan" -->
<!-- demo: next with HASH=plan:h1 -->
    rackwright host start h1 HASH
<!-- demo: next input correct horse -->

\`\`\`
rackwright credential update bmc
systemctl stop rackwright-controlplane
mv /var/lib/rackwright /var/lib/old
mkdir certificates
rackwright-controlplane backup --to FILE
\`\`\`

<!-- demo: by hand: it is the machine of a person -->

    apt install something

    editor FILE
`;
  expect(parseGuide(page)).toEqual([
    { kind: 'say', text: 'Replace a disk' },
    {
      kind: 'run',
      args: ['host', 'hold', 'h1', '--scope', 'work', '--reason', 'a disk'],
      texts: [],
      input: '',
    },
    {
      kind: 'run',
      args: ['host', 'create', 'h9', '--rack', 'r1', '--goal', 'manageable'],
      texts: [],
      input: '',
    },
    { kind: 'swap', host: 'h1' },
    { kind: 'fail', args: ['host', 'start', 'h1', 'plan:h1'], texts: ['no plan'], input: '' },
    {
      kind: 'run',
      args: ['credential', 'update', 'bmc'],
      texts: [],
      input: 'correct horse\n',
    },
    { kind: 'service', act: 'stop' },
    { kind: 'file', act: 'mv', from: '/var/lib/rackwright', to: '/var/lib/old' },
    { kind: 'file', act: 'mkdir', path: 'certificates' },
    { kind: 'controlPlane', args: ['backup', '--to', 'FILE'] },
  ]);
});

test('a block after one that is done by hand is run again', () => {
  const page = `<!-- demo: by hand: of the site -->

    apt install x

And then:

    apt install y
`;
  expect(() => parseGuide(page)).toThrow(/^line 7, "apt install y": nobody runs this/);
});

test.for([
  ['    systemctl restart ssh', 'systemctl start, or stop, rackwright-controlplane'],
  ['    mv a', 'mv FROM TO'],
  ['    mkdir -p a', 'mkdir FOLDER'],
  ["    rackwright host hold h1 --reason 'open", 'a quote is not closed'],
  ['<!-- demo: reboot h1 -->', 'it must begin with wait'],
  ['<!-- demo: next walk -->', 'next run, fail, see, input or with'],
  ['<!-- demo: next see expect -->', 'next see expect TEXT'],
  ['<!-- demo: next with hash -->', 'next with NAME=VALUE'],
])('the reader refuses "%s" and says what would be right', ([line = '', right = '']) => {
  expect(() => parseGuide(`# A guide\n\n${line}`)).toThrow(right);
});

test('the reader splits words as a shell does, without expansions', () => {
  expect(shellWords(`a 'b c' "d e"f # g`)).toEqual(['a', 'b c', 'd ef']);
  expect(shellWords("a#b --x='y z'")).toEqual(['a#b', '--x=y z']);
  expect(shellWords('')).toEqual([]);
});

const folder = join(import.meta.dirname, '../../../../controlplane/guides');
const guides = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md');

test.each(guides)('every command of %s can be run', (name) => {
  const commands = parseGuide(readFileSync(join(folder, name), 'utf8'));
  expect(commands.filter(({ kind }) => kind === 'run').length).toBeGreaterThan(2);
});
