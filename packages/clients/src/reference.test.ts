import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { referencePath, referenceText } from './definitions.ts';

test('the reference is that of the definitions', () => {
  // npm run gen writes it.
  expect(readFileSync(referencePath, 'utf8')).toBe(referenceText());
}, 120_000);

test('the reference has methods with their comments, and links that lead somewhere', () => {
  const text = readFileSync(referencePath, 'utf8');
  expect(text).toContain(
    '| `WhoAmI` | [WhoAmIRequest](#whoamirequest) | ' +
      '[WhoAmIResponse](#whoamiresponse) | WhoAmI tells',
  );
  const headings = [...text.matchAll(/^##+ (.+)$/gm)].map(([, name = '']) =>
    name.toLowerCase().replaceAll('.', ''),
  );
  const links = [...text.matchAll(/\(#([a-z0-9]+)\)/g)].map(([, name = '']) => name);
  expect(links.filter((name) => !headings.includes(name))).toEqual([]);
  expect(new Set(headings).size).toBe(headings.length);
});
