/**
 * Words that the glossary replaces, in the names of types and files: a name is what others read
 * first.
 *
 * A word has one term instead, and the term stands in GLOSSARY.md.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** The term that each word stands for; a plural counts as its singular. */
export const replacedWords: Readonly<Record<string, string>> = {
  standing: 'status',
  world: 'snapshot',
  turn: 'slot',
  door: 'listener',
};

/** Words that do not say what a file holds. They have no single term instead. */
const vagueWords: ReadonlySet<string> = new Set(['told', 'said', 'look', 'place', 'seat', 'sight']);

/**
 * Those that do not say what a type is. A place is a slot, a position, a path or a location. A
 * seat is what something is made from. A sight is a reading, an event, an observation or what is
 * visible.
 */
const vagueTypeWords: ReadonlySet<string> = new Set(['place', 'seat', 'sight']);

/** Files whose names may have such a word. */
export const namedOtherwise: readonly { place: RegExp; word: string; reason: string }[] = [
  {
    place: /^test\/sim\//,
    word: 'world',
    reason: 'all that a seed simulates: machines, programs, networks and people',
  },
  {
    place: /^agent\/src\/session\/testing\/world\.ts$/,
    word: 'world',
    reason: 'all that an agent has around it, imitated',
  },
  {
    place: /^packages\/store\/src\/conformance\/broken\/restored-in-place\.ts$/,
    word: 'place',
    reason: 'the term for a restore over the present data',
  },
  {
    place: /^packages\/demo\/scripts\/templates\/look\.yaml$/,
    word: 'look',
    reason: 'the template of that name',
  },
];

/** Whole names that do not say what a type is: a request, a question or options. */
const vagueTypeNames: ReadonlySet<string> = new Set(['Asked']);

const declaration = /\b(?:class|interface|type)\s+([A-Z][\w$]*)\s*(?:=|<|\{|extends|implements)/g;

/** Types of production code whose names have a replaced or a vague word. */
export function findReplacedWords(file: SourceFile): Finding[] {
  if (isTestCode(file.path)) return [];
  return namesOf(file).map(({ name, word, line }) => {
    return { path: file.path, line, message: `"${name}" says "${word}"; ${instead(word)}` };
  });
}

/** Files and folders, tests too, whose names have a replaced or a vague word. */
export function findReplacedFileNames(paths: readonly string[]): Finding[] {
  return paths.flatMap((path) => {
    const mayHave = namedOtherwise.filter(({ place }) => place.test(path)).map(({ word }) => word);
    const found = wordsOf(path.replaceAll(/[/._]/g, '-')).find(
      (word) => isUnwanted(word) && !mayHave.includes(word),
    );
    if (found === undefined) return [];
    return [{ path, line: 0, message: `the file's name says "${found}"; ${instead(found)}` }];
  });
}

function instead(word: string): string {
  const term = replacedWords[word];
  return term === undefined ? 'say what it holds' : `the glossary's term is "${term}"`;
}

function isUnwanted(word: string): boolean {
  return vagueWords.has(word) || isReplaced(word);
}

function isReplaced(word: string): boolean {
  return Object.hasOwn(replacedWords, word);
}

function namesOf(file: SourceFile): { name: string; word: string; line: number }[] {
  const code = codeOf(file.text);
  return [...code.matchAll(declaration)].flatMap(({ 1: name = '', index }) => {
    const word = vagueTypeNames.has(name)
      ? name
      : wordsOf(name).find((each) => isReplaced(each) || vagueTypeWords.has(each));
    if (word === undefined) return [];
    return [{ name, word, line: code.slice(0, index).split('\n').length }];
  });
}

/** `FairTurns` is fair and turn. */
function wordsOf(name: string): string[] {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split('-');
  return words.map((word) => word.replace(/s$/, ''));
}

/** The rows of the glossary. */
export interface GlossaryRow {
  /** One, or two that are told together. */
  readonly terms: readonly string[];
  readonly means: string;
  readonly source: string;
}

export function glossaryRows(text: string): GlossaryRow[] {
  return [...text.matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)]
    .slice(1)
    .map(([, terms = '', means = '', source = '']) => ({
      terms: terms.split(', '),
      means,
      source,
    }));
}
