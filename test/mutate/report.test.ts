import { expect, test } from 'vitest';
import { type Mutant, scoreOf, survivorLines } from './report.ts';

function mutant(id: string, status: string, line = 1, replacement = 'true'): Mutant {
  const location = { start: { line, column: 3 } };
  return { id, status, replacement, mutatorName: 'ConditionalExpression', location };
}

test('a mutant that was killed or ran without end is noticed; one left out does not count', () => {
  const statuses = ['Killed', 'Timeout', 'Survived', 'NoCoverage', 'Ignored', 'CompileError'];
  const mutants = statuses.map((status, at) => mutant(String(at), status));
  expect(scoreOf({ files: { 'a.ts': { mutants } } })).toEqual({
    ...{ noticed: 2, survived: 2, percent: 50 },
  });
  expect(scoreOf({ files: {} }).percent).toBe(100);
});

test('survivors are told by place, in the order of their lines', () => {
  const mutants = [
    mutant('1', 'Survived', 20, 'if\n  (false)'),
    mutant('2', 'NoCoverage', 5),
    mutant('3', 'Killed', 1),
  ];
  expect(survivorLines({ files: { 'a.ts': { mutants } } })).toEqual([
    'a.ts:5:3 ConditionalExpression → true (no test runs it)',
    'a.ts:20:3 ConditionalExpression → if (false)',
  ]);
});
