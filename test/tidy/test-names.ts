/**
 * Names of tests that do not say what they are of: a test outside every group has nothing around
 * it that could be its subject.
 */
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

/** Verbs with which a name begins whose subject is left out. */
const bareVerbs = [
  'is',
  'are',
  'has',
  'have',
  'was',
  'were',
  'takes',
  'shows',
  'tells',
  'says',
  'gives',
];

/** At the margin: a test begins, or the table of one ends; the name may stand on the next line. */
const topLevelName = new RegExp(
  `^(?:test\\b|[)\\]}])[^\\n]*\\((?:\\n {2})?(['"\`])((?:${bareVerbs.join('|')}) [^\\n]*?)\\1,`,
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
