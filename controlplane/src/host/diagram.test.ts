import { expect, test } from 'vitest';
import { stateDiagram } from './diagram.ts';

test('the diagram draws every way between the stable states that the tables allow', () => {
  expect(stateDiagram().split('\n')).toEqual([
    'stateDiagram-v2',
    '  [*] --> new: create',
    '  new --> manageable: verify succeeded',
    '  new --> gone: delete succeeded',
    '  new --> external: adopt succeeded',
    '  new --> provisioned: adopt succeeded',
    '  new --> external: deleted by force, with work of a newer version',
    '  manageable --> available: clean succeeded',
    '  manageable --> gone: delete succeeded',
    '  manageable --> external: adopt succeeded',
    '  manageable --> provisioned: adopt succeeded',
    '  manageable --> external: deleted by force, with work of a newer version',
    '  available --> manageable: clean succeeded, failed, timed out, cancelled',
    '  available --> gone: delete succeeded',
    '  available --> provisioned: provision succeeded',
    '  available --> manageable: provision failed, timed out, cancelled',
    '  available --> available: provision failed, timed out, cancelled before a write',
    '  available --> manageable: may have been used / another machine answers / ' +
      'erasure not proved again / hardware changed / an image is being written / goal is less',
    '  available --> external: deleted by force, with work of a newer version',
    '  provisioned --> gone: delete succeeded',
    '  provisioned --> manageable: release succeeded',
    '  provisioned --> external: deleted by force, with work of a newer version',
    '  external --> gone: delete succeeded',
    '  external --> provisioned: adopt succeeded',
    '  gone --> [*]',
  ]);
});
