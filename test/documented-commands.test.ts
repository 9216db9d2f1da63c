/**
 * Every command that the manual and the guides show has words and flags that the command line
 * knows. Its arguments may be placeholders, or left out within a sentence.
 */
import { expect, test } from 'vitest';
import { parseCommand } from './parse-command.ts';
import { readSources, repositoryPaths, type SourceFile } from './tidy/sources.ts';

const documents = readSources(
  repositoryPaths().filter((path) => /^(README|controlplane\/.*)\.md$/.test(path)),
);

/** A shell's words: quoted ones, others, and an operator, which ends the command. */
const shellWord = /"(?:\$\([^)]*\)|[^"])*"|'[^']*'|[|;&<>#]|(?:[^\s"'|;&<>#\\]|\\.|'[^']*')+/g;

/** Words up to the first operator of the shell or comment. */
function wordsOf(line: string): string[] {
  const args: string[] = [];
  for (const [word] of line.matchAll(shellWord)) {
    if (/^[|;&<>#]$/.test(word)) break;
    args.push(word.replaceAll(/["']/g, ''));
  }
  return args;
}

/** The commands of code blocks: lines indented by four, with their continuation lines. */
function commandsInBlocks({ path, text }: SourceFile) {
  const lines = text.replaceAll(/ \\\n\s+/g, ' ').split('\n');
  return lines.flatMap((line) => {
    const [, command] = /^ {4}(?:.* \| )?(?:npx )?rackwright ([a-z].*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ path, args: wordsOf(command) }];
  });
}

/** The commands between backquotes in sentences that begin with `rackwright`, or give a flag. */
function commandsInSentences({ path, text }: SourceFile) {
  const sentences = text.replaceAll(/^( {4}.*|```[^`]*```)$/gm, '');
  const spans = [...sentences.matchAll(/`(?:npx )?(rackwright )?([a-z][^`]*)`/g)];
  return spans.flatMap(([, program, command = '']) => {
    const isCommand = program !== undefined || /^(host|rack|fleet|pool) [a-z-]+ /.test(command);
    return isCommand ? [{ path, args: wordsOf(command) }] : [];
  });
}

/** Refusals of a word or a flag, not of a value or of a file that is not there. */
const isUnknown = /has no (?:command|flag) |is one argument too many/;

async function refusalsOf(commands: readonly { path: string; args: readonly string[] }[]) {
  const refused: string[] = [];
  for (const { path, args } of commands) {
    const { err } = await parseCommand(args);
    if (isUnknown.test(err)) refused.push(`${path}: ${args.join(' ')}: ${err.trim()}`);
  }
  return refused;
}

test('the search finds the commands of blocks and of sentences', () => {
  const text =
    'As `host get h1` says:\n\n    npx rackwright host list \\\n      --rack r1 > file  # all\n';
  const file = { path: 'a.md', text };
  expect(commandsInBlocks(file).map(({ args }) => args.join(' '))).toEqual(['host list --rack r1']);
  expect(commandsInSentences(file).map(({ args }) => args.join(' '))).toEqual(['host get h1']);
});

test('the search finds a command and a flag that do not exist', async () => {
  const commands = ['host plan HOST clean', 'host list --racks r1', 'host get h1 h2'];
  const given = commands.map((command) => ({ path: 'a.md', args: wordsOf(command) }));
  expect(await refusalsOf(given)).toHaveLength(commands.length);
});

test('the command line knows the words and flags of every command of a block', async () => {
  const commands = documents.flatMap(commandsInBlocks);
  expect(commands.length).toBeGreaterThan(150);
  expect(await refusalsOf(commands)).toEqual([]);
});

test('the command line knows the words and flags of every command of a sentence', async () => {
  const commands = documents.flatMap(commandsInSentences);
  expect(commands.length).toBeGreaterThan(30);
  expect(await refusalsOf(commands)).toEqual([]);
});
