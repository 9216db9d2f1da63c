import { expect, test } from 'vitest';
import { brandsOf, findForgedBrands } from './brands.ts';

const home = {
  path: 'packages/oci/src/digest.ts',
  text: "export type Digest = string & { readonly __brand: 'Digest' };\nreturn text as Digest;",
};
const brands = brandsOf([home, { path: 'a.ts', text: 'type Other = string;' }]);

test('the check knows the brands and where each is declared', () => {
  expect([...brands]).toEqual([['Digest', home.path]]);
});

test('the check finds an assertion elsewhere, and none at home or of another type', () => {
  expect(findForgedBrands(home, brands)).toEqual([]);
  const text = 'a;\nconst b = c as Digest;\nconst d = c as Other;';
  expect(findForgedBrands({ path: 'a.test.ts', text }, brands)).toMatchObject([{ line: 2 }]);
});
