import { expect, test } from 'vitest';
import {
  diagramBlock,
  diagramEnd,
  diagramIn,
  diagramStart,
  findBrokenLinks,
  findLooseAnchors,
  findLooseCitations,
  findUnlistedSections,
} from './documents.ts';

test('the check finds a link that leads to no file or folder', () => {
  const paths = ['README.md', 'agent/README.md', 'agent/src/main.ts'];
  const text =
    'see [a](src/main.ts), [b](../README.md#top), [c](src/), [d](https://x.y/z), [e](#f)';
  expect(findBrokenLinks({ path: 'agent/README.md', text }, paths)).toEqual([]);
  const broken = 'fine\n[a](src/gone.ts)';
  expect(findBrokenLinks({ path: 'agent/README.md', text: broken }, paths)).toMatchObject([
    { line: 2, message: '"src/gone.ts" leads nowhere' },
  ]);
});

test('the check finds a link to a section that there is none of', () => {
  const there = { path: 'a/B.md', text: '# Top\n\n## The BMC’s `word`, again\n\n    # code\n' };
  const find = (text: string) => findLooseAnchors({ path: 'README.md', text }, [there]);
  const known =
    '[a](a/B.md#top), [b](a/B.md#the-bmcs-word-again), [c](https://x.y/#z), [d](c.md#e)';
  expect(find(known)).toEqual([]);
  expect(find('[a](a/B.md#code)')).toMatchObject([{ message: 'a/B.md has no section #code' }]);
  const own = { path: 'a/B.md', text: '# Top\n[a](#top) [b](#bottom)' };
  expect(findLooseAnchors(own, [own])).toMatchObject([{ line: 2 }]);
});

test('the check finds a section that the list of a manual lacks', () => {
  const text = '# M\n\n- [One](#one)\n\n## One\n\n### Part\n\n## Two\n';
  expect(findUnlistedSections({ path: 'M.md', text })).toMatchObject([
    { message: '"Two" is not in the list at the top' },
  ]);
});

test('the check finds a citation of a section or rule that is not defined', () => {
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

test('the check reads the diagram between its markers', () => {
  const block = diagramBlock('stateDiagram-v2\n  new --> gone\n');
  expect(diagramIn(`# A\n\n${diagramStart}\n${block}\n${diagramEnd}\n`)).toBe(block);
  expect(diagramIn('# A')).toBeUndefined();
  expect(diagramIn(`${diagramEnd} ${diagramStart}`)).toBeUndefined();
});
