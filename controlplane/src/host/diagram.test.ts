import { expect, test } from 'vitest';
import { stateDiagram } from './diagram.ts';

test('draws every way between the stable states that the tables allow', () => {
  expect(stateDiagram().split('\n')).toEqual([
    'stateDiagram-v2',
    '  [*] --> new: create',
    '  new --> manageable: verify succeeded',
    '  new --> gone: delete succeeded',
    '  new --> external: adopt succeeded',
    '  new --> provisioned: adopt succeeded',
    '  manageable --> available: clean succeeded',
    '  manageable --> gone: delete succeeded',
    '  manageable --> external: adopt succeeded',
    '  manageable --> provisioned: adopt succeeded',
    '  available --> manageable: clean succeeded, failed, timed out, cancelled',
    '  available --> gone: delete succeeded',
    '  available --> provisioned: provision succeeded',
    '  available --> manageable: provision failed, timed out, cancelled',
    '  provisioned --> gone: delete succeeded',
    '  provisioned --> manageable: release succeeded',
    '  external --> gone: delete succeeded',
    '  external --> provisioned: adopt succeeded',
    '  gone --> [*]',
  ]);
});
