import { expect, test } from 'vitest';
import { findDroppedErrors } from './dropped.ts';

function linesIn(text: string, path = 'agent/src/session/link.ts'): number[] {
  return findDroppedErrors({ path, text }).map(({ line }) => line);
}

test.each([
  'a;\ntry { b(); } catch { return undefined; }',
  'try { b(); }\ncatch (error) {}',
  "const url = 'http://b/c';\nb(url).catch(() => undefined);",
  'a;\nawait b().catch(() => {});',
  "a;\nconst text = await b().catch(() => '');",
  'a;\nconst it = await b().catch(async () => ({}));',
  'a;\nb().then(c, () => {});',
  'a;\nawait whenSettled(b());',
  'a;\nmarkHandled(this.#b({ c }));',
  'a;\nb().catch(() => null);\n// It is about d.\nd();',
  'a;\ntry { b(); } catch {\n  // (3)\n}',
  '// ignored (R4)\nb().catch(() => undefined);',
])('the check finds %j', (text) => {
  expect(linesIn(text)).toEqual([2]);
});

test.each([
  'try { b(); } catch {\n  // It is gone already.\n}',
  'try { b(); } catch { /* It is gone already. */ }',
  'try {\n  b();\n} catch {\n  return undefined; // It is gone already.\n}',
  'try { b(); } catch (error) { log.warn({}, "it failed", error); }',
  '// Whoever reads it next gets the error.\nb().catch(() => undefined);',
  'b().catch(() => undefined); // whoever reads it next gets the error',
  '// Whoever reads it next gets the error.\nawait b(\n  c,\n  d,\n).catch(() => {});',
  '// It ends by itself.\nb().then(c, () => {});',
  '// Whoever reads it next\n// fails.\nb().catch(() => undefined);',
  '// It ends by itself.\nmarkHandled(b());',
  'await whenSettled(this.#last); markHandled(each.done);',
  'b().catch((error: unknown) => log.warn({}, "it failed", error));',
  'b().catch(() => retry()); b().then(() => {}); b().then(() => undefined, fail);',
  "const text = 'b().catch(() => undefined)';",
])('the check lets %j stand', (text) => {
  expect(linesIn(text)).toEqual([]);
});

test('the check looks at product code only', () => {
  const text = 'b().catch(() => undefined);';
  expect(linesIn(text, 'agent/src/session/link.test.ts')).toEqual([]);
  expect(linesIn(text, 'packages/sim/src/world.ts')).toEqual([]);
  expect(linesIn(text, 'packages/bmc/src/driver.ts')).toEqual([1]);
});
