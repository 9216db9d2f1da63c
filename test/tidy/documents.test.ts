import { expect, test } from 'vitest';
import {
  diagramBlock,
  diagramEnd,
  diagramIn,
  diagramStart,
  findBrokenLinks,
  findLooseCitations,
} from './documents.ts';

test('finds a link that leads to no file or folder', () => {
  const paths = ['README.md', 'agent/README.md', 'agent/src/main.ts'];
  const text =
    'see [a](src/main.ts), [b](../README.md#top), [c](src/), [d](https://x.y/z), [e](#f)';
  expect(findBrokenLinks({ path: 'agent/README.md', text }, paths)).toEqual([]);
  const broken = 'fine\n[a](src/gone.ts)';
  expect(findBrokenLinks({ path: 'agent/README.md', text: broken }, paths)).toMatchObject([
    { line: 2, message: '"src/gone.ts" leads nowhere' },
  ]);
});

test('finds a citation of a section or rule that is not defined', () => {
  const design = '## 4. Life\n\n- **R4** What a crash cut short\n- **R9** is told.\n';
  const find = (cited: string) =>
    findLooseCitations(
      { path: 'a.ts', text: ['/** Why\n * (DESIGN', `${cited}). */`].join(' ') },
      design,
    );
  expect([...find('§4'), ...find('R4, R9')]).toEqual([]);
  expect(find('§4, §12')).toMatchObject([{ line: 2, message: 'DESIGN.md defines no §12' }]);
  expect(find('R1')).toHaveLength(1);
});

test('reads the diagram between its markers', () => {
  const block = diagramBlock('stateDiagram-v2\n  new --> gone\n');
  expect(diagramIn(`# A\n\n${diagramStart}\n${block}\n${diagramEnd}\n`)).toBe(block);
  expect(diagramIn('# A')).toBeUndefined();
  expect(diagramIn(`${diagramEnd} ${diagramStart}`)).toBeUndefined();
});
