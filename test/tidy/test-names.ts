/**
 * Names of tests that do not say what they are of: a test outside every group has nothing around
 * it that could be its subject.
 */
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** Verbs with which a name begins whose subject is left out. */
const bareVerbs = [
  ...['is', 'are', 'has', 'have', 'was', 'were', 'does', 'can', 'may', 'must', 'will'],
  ...['accepts', 'adds', 'allows', 'asks', 'becomes', 'begins', 'closes', 'comes', 'creates'],
  ...['drops', 'ends', 'erases', 'fails', 'finds', 'follows', 'forgets', 'gets', 'gives', 'goes'],
  ...['ignores', 'keeps', 'knows', 'lets', 'makes', 'needs', 'never', 'opens', 'parses', 'prints'],
  ...['puts', 'refuses', 'rejects', 'removes', 'sends', 'sets', 'skips', 'starts', 'stays'],
  ...['stops', 'survives', 'takes', 'throws', 'tries', 'uses', 'waits', 'works'],
  ...['says', 'shows', 'tells'],
];

/** Verbs that are also the plural of a noun: "writes are slow" has a subject. */
const verbsOrNouns = [
  ...['answers', 'blanks', 'boots', 'calls', 'copies', 'counts', 'holds', 'leaves', 'lists'],
  ...['marks', 'names', 'orders', 'reads', 'reports', 'returns', 'runs', 'states', 'streams'],
  ...['writes'],
];
const afterNoun = ['and', 'are', 'from', 'go', 'have', 'lie', 'of', 'or', 'share', 'stay', 'that'];

const subjectless =
  `(?:${bareVerbs.join('|')}) [^\\n]*?|` +
  `(?:${verbsOrNouns.join('|')}) (?!(?:${afterNoun.join('|')})\\b)[^\\n]*?`;

/** At the margin: a test begins, or the table of one ends; the name may stand on the next line. */
const topLevelName = new RegExp(
  `^(?:test\\b|[)\\]}])[^\\n]*\\((?:\\n {2})?(['"\`])(${subjectless})\\1,`,
  'gm',
);

/** Tests outside every group whose names begin with such a verb. */
export function findBareTestNames(file: SourceFile): Finding[] {
  if (!isTestCode(file.path)) return [];
  return [...file.text.matchAll(topLevelName)].map(({ 0: matched, 2: name = '', index }) => {
    const line = file.text.slice(0, index + matched.length).split('\n').length;
    return { path: file.path, line, message: `the test's name has no subject: "${name}"` };
  });
}
