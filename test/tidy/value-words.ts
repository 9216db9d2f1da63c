/**
 * Words that the glossary replaces, in the names of functions, methods, fields, parameters and
 * locals. [words.ts](words.ts) checks types and files.
 *
 * V1. A word in a name counts alone or as a part: `place` and `queuePlaces` both say "place".
 * V2. A question word is found only as a whole name: it does not say what the value is.
 * V3. A name after a dot and a key of an object literal are not judged: who declares them chose
 *     them. The names that a file takes from elsewhere by destructuring need an exception.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** What each word stands for; an inflected form counts as its word (`formOf`). */
export const valueWords: Readonly<Record<string, string>> = {
  door: 'a listener or a connection',
  look: 'an observation, a reading, a check or a pass',
  place: 'a slot, a position, a path or a location',
  said: 'a verdict, a response, or what the text is of',
  seat: 'what one call or one part is made from',
  sight: 'a reading, an event, an observation, or what is visible',
  stand: 'a status, or what is present, valid or stored',
  told: 'a report, a response, or what was sent',
  turn: 'a slot',
  world: 'a snapshot',
};

/** Names that do not say what the value is (V2). */
const questionWords: ReadonlySet<string> = new Set(['what', 'where', 'who']);

/** A name that stays, everywhere or in the files that `path` matches. */
interface NameThatStays {
  readonly name: string;
  readonly path?: RegExp;
  readonly reason: string;
}

/** Exact names that stay. */
export const namesThatStay: readonly NameThatStays[] = [
  { name: 'places', reason: 'a field of the signed erasure statement' },
  { name: 'placesRead', reason: 'a field of the signed erasure statement' },
  { name: 'queuePlace', reason: 'a field of the agent’s protocol' },
  { name: 'turnTimeout', reason: 'a field of the agent’s protocol' },
  { name: 'lookFirst', reason: 'a field of the stored record of a goal' },
  { name: 'lookFirstSince', reason: 'a field of the stored record of a host' },
  { name: 'PriorityPlace', reason: 'an enum of the API' },
  { name: 'worldWideName', reason: 'the term of T10 and IEEE for the name of a disk' },
];

/** No name can follow these but a name that is declared. */
const declaring = /\b(?:const|let|function\*?|class|interface|type|readonly|static|get|set)\s+#?$/;
/** What follows the colon of a field or of a parameter, and not that of a key. */
const typeAfter =
  /^\??:\s*(?:readonly\b|string\b|number\b|boolean\b|bigint\b|object\b|unknown\b|\(|\{[^}]*;|[A-Z]\w*\s*(?:[<[;,)|=&]|$)|['"`][^'"`]*['"`]\s*[|;])/;
const identifier = /(?<![\w$.#])#?[A-Za-z_$][\w$]*/g;

/** Names in production code with a replaced word. */
export function findValueWords(file: SourceFile): Finding[] {
  if (isTestCode(file.path)) return [];
  const isMarkup = file.path.endsWith('.tsx');
  return codeOf(file.text)
    .split('\n')
    .flatMap((line, index) =>
      [...line.matchAll(identifier)].flatMap(({ 0: found, index: at }) => {
        const name = found.replace('#', '');
        const message = problemOf(name, file.path);
        if (message === undefined || isKey(line, at, found)) return [];
        if (isMarkup && isProse(line, at, found)) return [];
        return [{ path: file.path, line: index + 1, message }];
      }),
    );
}

function problemOf(name: string, path: string): string | undefined {
  const stays = namesThatStay.find((each) => each.name === name);
  if (stays !== undefined && stays.path?.test(path) !== false) return undefined;
  if (questionWords.has(name)) return `"${name}" does not say what the value is`;
  const word = wordsOf(name)
    .map(formOf)
    .find((each) => each !== undefined);
  return word && `"${name}" says "${word}"; name ${valueWords[word]}`;
}

/** V3. */
function isKey(line: string, at: number, found: string): boolean {
  const after = line.slice(at + found.length);
  if (!/^\??:(?!:)/.test(after) || declaring.test(line.slice(0, at))) return false;
  return !typeAfter.test(after);
}

/** In markup a text stands between tags, and `codeOf` leaves it: a word has words beside it. */
function isProse(line: string, at: number, found: string): boolean {
  const before = line.slice(0, at);
  if (/\b(?:const|let|function|return)\s+$/.test(before)) return false;
  return (
    /[\w’.;,>]\s+$|>$|^\s*$/.test(before) && /^\s+[a-z{<]|^</.test(line.slice(at + found.length))
  );
}

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[-_]/);
}

/** The replaced word of which `word` is a form: "look" of "looks", "looked" and "looking". */
function formOf(word: string): string | undefined {
  if (word === 'stood') return 'stand';
  const stem = word.replace(/(?:s|ed|ing)$/, '');
  return [word, stem, `${stem}e`].find((each) => Object.hasOwn(valueWords, each));
}
