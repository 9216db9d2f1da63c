import { expect, test } from 'vitest';
import { parseSourceProblem, sourceProblemText } from './source-problem.ts';

test('a problem of a source is read as it was written, with any message', () => {
  for (const message of ['', 'line 4, column 2: nested', 'two\nlines', 'ä: ö']) {
    const problem = { line: 12, column: 1, message };
    expect(parseSourceProblem(sourceProblemText(problem))).toEqual(problem);
  }
});

test('a text of another form is no problem at a position', () => {
  for (const text of ['', 'line 3: x', 'line x, column 1: y', ' line 1, column 1: y']) {
    expect(parseSourceProblem(text)).toBeUndefined();
  }
});
