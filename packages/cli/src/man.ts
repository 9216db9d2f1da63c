/**
 * Man pages from the tables that `--help` is made of: one for the command, one for each word after
 * it. Pure but for loading the routes.
 */
import type { Command, RouteMap } from '@stricli/core';
import { briefs } from './briefs.ts';
import type { CliContext } from './command-io.ts';
import { exitCodes, exitCodeTexts } from './failure.ts';
import { loadRoute, routeNames } from './routes.ts';

type Target = Command<CliContext> | RouteMap<CliContext>;
type Flags = NonNullable<Command<CliContext>['parameters']['flags']>;
type Flag = Flags[string];

/** A page: "rackwright-host.1" and its roff. */
export interface ManPage {
  readonly name: string;
  readonly text: string;
}

/** All pages; `date` as "2026-01-31". */
export async function manPages(version: string, date: string): Promise<ManPage[]> {
  const pages: ManPage[] = [{ name: 'rackwright.1', text: mainPage(version, date) }];
  for (const name of routeNames) {
    const words = ['rackwright', name];
    const title = words.join('-');
    const text = [
      ...headOf(title, briefs[name], version, date),
      '.SH COMMANDS',
      ...sectionsOf(words, await loadRoute(name)),
      ...seeAlso(['rackwright']),
    ].join('\n');
    pages.push({ name: `${title}.1`, text: `${text}\n` });
  }
  return pages;
}

function mainPage(version: string, date: string): string {
  const codes = Object.entries(exitCodeTexts).flatMap(([name, text]) => [
    '.TP',
    `.B ${exitCodes[name as keyof typeof exitCodes]}`,
    escaped(text),
  ]);
  const text = [
    ...headOf('rackwright', 'operate bare-metal hosts', version, date),
    '.SH SYNOPSIS',
    '.B rackwright',
    '.I COMMAND',
    '[\\fIARGUMENT\\fR ...] [\\fB\\-\\-FLAG\\fR ...]',
    '.SH COMMANDS',
    ...routeNames.flatMap((name) => [
      '.TP',
      `.BR rackwright\\-${escaped(name)} (1)`,
      escaped(briefs[name]),
    ]),
    '.SH EXIT STATUS',
    ...codes,
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => ['.TP', `.B ${name}`, escaped(text)]),
    '.SH FILES',
    '.TP',
    '.I ~/.config/rackwright/config.yaml',
    escaped('Contexts, and where the control plane is. Readable by its owner alone.'),
    '.TP',
    '.I ~/.config/rackwright/sessions/',
    escaped('Sign-ins of `rackwright login`. Readable by their owner alone.'),
    ...seeAlso(routeNames.map((name) => `rackwright-${name}`)),
  ].join('\n');
  return `${text}\n`;
}

const environment = [
  ['RACKWRIGHT_SERVER', 'The control plane, HOST:PORT.'],
  ['RACKWRIGHT_TOKEN_FILE', 'The file with the token.'],
  ['RACKWRIGHT_CA_FILE', 'The file with the certificate authority of the control plane.'],
  ['RACKWRIGHT_CONTEXT', 'The context to use.'],
  ['RACKWRIGHT_CONFIG', 'The file with the contexts.'],
] as const;

function headOf(title: string, brief: string, version: string, date: string): string[] {
  return [
    `.TH ${title.toUpperCase().replaceAll('-', '\\-')} 1 ${date} "Rackwright ${version}"`,
    '.SH NAME',
    `${escaped(title)} \\- ${escaped(brief)}`,
  ];
}

function seeAlso(names: readonly string[]): string[] {
  const last = names.length - 1;
  return [
    '.SH SEE ALSO',
    ...names.map((name, index) => `.BR ${escaped(name)} (1)${index < last ? ',' : ''}`),
  ];
}

function sectionsOf(words: readonly string[], target: Target): string[] {
  if ('getAllEntries' in target) {
    return target
      .getAllEntries()
      .filter(({ hidden }) => !hidden)
      .flatMap((entry) => sectionsOf([...words, entry.name.original], entry.target));
  }
  const { flags = {}, positional, aliases = {} } = target.parameters;
  const all = Object.entries(flags);
  return [
    `.SS "${escaped(words.join(' '))}"`,
    `.B ${escaped(words.join(' '))}`,
    ...argumentsOf(positional),
    ...(all.length === 0 ? [] : ['[\\fIFLAGS\\fR]']),
    '.PP',
    ...paragraphs(target.fullDescription ?? target.brief),
    ...all.flatMap(([name, flag]) => flagLines(name, flag, aliases)),
  ];
}

function argumentsOf(positional: Command<CliContext>['parameters']['positional']): string[] {
  if (positional === undefined) return [];
  const { parameters } =
    positional.kind === 'tuple' ? positional : { parameters: [positional.parameter] };
  const more = positional.kind === 'tuple' ? '' : ' ...';
  return parameters.map(({ placeholder = 'argument', optional }) => {
    const name = `\\fI${escaped(placeholder.toUpperCase())}\\fR${more}`;
    return optional === true || more !== '' ? `[${name}]` : name;
  });
}

function flagLines(
  name: string,
  flag: Flag,
  aliases: Readonly<Partial<Record<string, string>>>,
): string[] {
  const [short] = Object.entries(aliases).find(([, of]) => of === name) ?? [];
  const kebab = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const shown = [...(short === undefined ? [] : [`-${short}`]), `--${kebab}`].join(', ');
  const value = valueOf(flag);
  const usual = flag.kind !== 'counter' && flag.default ? ` Default: ${String(flag.default)}.` : '';
  return [
    '.TP',
    `\\fB${escaped(shown)}\\fR${value === '' ? '' : ` \\fI${escaped(value)}\\fR`}`,
    escaped(`${flag.brief}.${usual}`),
  ];
}

function valueOf(flag: Flag): string {
  switch (flag.kind) {
    case 'boolean':
    case 'counter':
      return '';
    case 'enum':
      return flag.values.join('|');
    case 'parsed':
      return (flag.placeholder ?? 'value').toUpperCase();
  }
}

function paragraphs(text: string): string[] {
  return text.split(/\n\n+/).flatMap((part) => ['.PP', escaped(part.replaceAll('\n', ' '))]);
}

/** Escapes text for roff: a backslash stays literal, "-" is a hyphen that can be typed. */
function escaped(text: string): string {
  const plain = text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('’', '\\(cq')
    .replaceAll('…', '...');
  return plain.replace(/^\./, '\\&.');
}
