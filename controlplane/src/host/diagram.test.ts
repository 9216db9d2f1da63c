import { expect, test } from 'vitest';
import { stateDiagram } from './diagram.ts';

test('draws every way between the stable states that the tables allow', () => {
  expect(stateDiagram().split('\n')).toEqual([
    'stateDiagram-v2',
    '  [*] --> new: create',
    '  new --> manageable: verify succeeded',
    '  new --> gone: delete succeeded',
    '  manageable --> available: clean succeeded',
    '  manageable --> gone: delete succeeded',
    '  available --> manageable: clean succeeded, failed, timed out, cancelled',
    '  available --> gone: delete succeeded',
    '  gone --> [*]',
  ]);
});
