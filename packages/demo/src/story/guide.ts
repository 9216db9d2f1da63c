/**
 * Guides for operators as scripts: every command in a code block of a Markdown page is run. Pure.
 *
 * G1 A line of a code block that nobody can run is an error, unless the comment before its block
 *    says that it is done by hand, and why.
 *
 * What a reader does not type stands in comments of the page, which no reader sees:
 *
 *     <!-- demo: COMMAND -->                 any command of a script, as `swap h1`
 *     <!-- demo: next see expect "TEXT" -->  how the next line is run: `run` without it, `fail`,
 *                                            `see`; and what it has to print
 *     <!-- demo: next input TEXT -->         the standard input of the next line
 *     <!-- demo: next with NAME=VALUE -->    what stands for NAME in the next line, as `plan:h1`
 *     <!-- demo: by hand: WHY -->            the next block is not run
 */
import { errorText } from '@rackwright/platform';
import { expectingOf } from './expected.ts';
import { parseCommand, type RackwrightCommand, type ScriptCommand } from './script.ts';
import { shellWords } from './shell-words.ts';

/** Comments about the next line. */
interface Next {
  kind: RackwrightCommand['kind'];
  texts: readonly string[];
  input: string;
  readonly values: Map<string, string>;
}

interface GuideReading {
  readonly commands: ScriptCommand[];
  next: Next;
  /** The next block, or the one that is read, is done by hand. */
  byHand: boolean;
  /** The beginning of a line that goes on after a backslash. */
  begun: string;
}

const usual = (): Next => ({ kind: 'run', texts: [], input: '', values: new Map() });

/** Reads a page. Throws with the line's number for a line that cannot be run. */
export function parseGuide(text: string): ScriptCommand[] {
  const reading: GuideReading = { commands: [], next: usual(), byHand: false, begun: '' };
  let fenced = false;
  let wasCode = false;
  for (const [index, line] of text.split('\n').entries()) {
    const isFence = line.startsWith('```');
    if (isFence) fenced = !fenced;
    const isCode = !isFence && (fenced || /^ {4,}\S/.test(line));
    const isBlank = line.trim() === '';
    if (wasCode && !isCode && !isBlank) reading.byHand = false;
    if (!isBlank) wasCode = isCode || isFence;
    try {
      if (isCode) readCode(reading, line.trim());
      else readText(reading, line);
    } catch (error) {
      const text = errorText(error);
      throw new Error(`line ${index + 1}, "${line.trim()}": ${text}`, { cause: error });
    }
  }
  return reading.commands;
}

function readText(reading: GuideReading, line: string): void {
  const [, heading] = /^#+ (.*)$/.exec(line) ?? [];
  if (heading !== undefined) reading.commands.push({ kind: 'say', text: heading });
  const [, directive] = /^<!-- demo: (.*) -->$/.exec(line) ?? [];
  if (directive === undefined) return;
  if (/^by hand: \S/.test(directive)) reading.byHand = true;
  else if (directive.startsWith('next ')) readNext(reading, directive.slice('next '.length));
  else reading.commands.push(parseCommand(directive));
}

function readNext({ next }: GuideReading, directive: string): void {
  const [verb = '', ...args] = shellWords(directive);
  switch (verb) {
    case 'run':
    case 'fail':
    case 'see': {
      const expecting = expectingOf(args);
      if (expecting === undefined || expecting.args.length > 0) {
        throw new Error(`it must be: next ${verb} expect TEXT`);
      }
      next.kind = verb;
      next.texts = expecting.texts;
      return;
    }
    case 'input':
      next.input = `${args.join(' ')}\n`;
      return;
    case 'with': {
      const [, name, value] = /^([A-Z]+)=(.+)$/.exec(directive.slice('with '.length).trim()) ?? [];
      if (name === undefined || value === undefined) {
        throw new Error('it must be: next with NAME=VALUE');
      }
      next.values.set(name, value);
      return;
    }
    default:
      throw new Error('it must be: next run, fail, see, input or with');
  }
}

function readCode(reading: GuideReading, line: string): void {
  const whole = `${reading.begun}${line}`;
  if (whole.endsWith('\\')) {
    reading.begun = `${whole.slice(0, -1).trimEnd()} `;
    return;
  }
  reading.begun = '';
  if (reading.byHand || whole === '' || whole.startsWith('#')) return;
  reading.commands.push(commandOf(whole, reading.next));
  reading.next = usual();
}

function commandOf(line: string, next: Next): ScriptCommand {
  const words = shellWords(line).map((word) => next.values.get(word) ?? word);
  const [program, ...args] = words[0] === 'npx' ? words.slice(1) : words;
  switch (program) {
    case 'rackwright':
      return { kind: next.kind, args, texts: next.texts, input: next.input };
    case 'rackwright-controlplane':
      return { kind: 'controlPlane', args };
    case 'systemctl':
      return serviceOf(args);
    case 'mkdir': {
      const [path, ...more] = args;
      if (path === undefined || more.length > 0) throw new Error('mkdir FOLDER');
      return { kind: 'file', act: 'mkdir', path };
    }
    case 'mv': {
      const [from, to, ...more] = args;
      if (from === undefined || to === undefined || more.length > 0) throw new Error('mv FROM TO');
      return { kind: 'file', act: 'mv', from, to };
    }
    default:
      throw new Error('nobody runs this: say before it that it is done by hand, and why');
  }
}

function serviceOf([act, unit]: readonly string[]): ScriptCommand {
  if (unit !== 'rackwright-controlplane' || !(act === 'start' || act === 'stop')) {
    throw new Error('it must be: systemctl start, or stop, rackwright-controlplane');
  }
  return { kind: 'service', act };
}
