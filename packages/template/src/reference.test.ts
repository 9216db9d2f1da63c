/** REFERENCE.md says what the code does: its examples are read, its names and numbers compared. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { actionNames, besideNames } from './actions.ts';
import { functions } from './expression/functions.ts';
import { hostFields, stepFields, stepStates } from './expression/references.ts';
import { scopeOf } from './hosts.fixture.ts';
import { parseTemplate, renderTemplate } from './index.ts';
import * as limits from './limits.ts';
import { stepFieldsOfAll } from './steps.ts';

const reference = readFileSync(new URL('../REFERENCE.md', import.meta.url), 'utf8');
const examples = [...reference.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, source]) => source);

describe('the reference', () => {
  test.each(examples.map((source, index) => [index + 1, source ?? ''] as const))(
    'has an example %i that can be read and rendered',
    (_, source) => {
      const parsed = parseTemplate(source);
      if (parsed.kind === 'bad') throw new Error(JSON.stringify(parsed.problems));
      const given = source.includes('digest: {}') ? { digest: '0a'.repeat(32) } : {};
      const result = renderTemplate(parsed.template, scopeOf(given));
      if (result.kind === 'bad') throw new Error(JSON.stringify(result.problems));
      expect(result.rendered.steps.length).toBeGreaterThan(0);
    },
  );

  test('has examples of every action', () => {
    const seen = examples.flatMap((source) => {
      const parsed = parseTemplate(source ?? '');
      return parsed.kind === 'ok' ? parsed.template.steps.map(({ action }) => action) : [];
    });
    expect(new Set(seen)).toEqual(new Set(actionNames));
  });

  test.each([...stepFieldsOfAll, ...besideNames, ...Object.keys(functions), ...stepStates])(
    'names %s',
    (name) => {
      expect(reference).toMatch(new RegExp(`\`${name}(\`|\\()`));
    },
  );

  test.each([
    ...Object.keys(hostFields).map((name) => `host.${name}`),
    ...Object.keys(stepFields).map((name) => `steps.NAME.${name}`),
  ])('names the reference %s', (name) => {
    expect(reference).toContain(`\`${name}`);
  });

  test.each(Object.entries(limits))('says how much %s is', (name, value) => {
    const shown = name.includes('Seconds') ? `${value / 3_600}h` : String(value);
    expect(reference).toMatch(new RegExp(`\\b${shown}\\b`));
  });
});
