import { RerunClass } from '@rackwright/messages';
import { parseTemplate, renderTemplate } from '@rackwright/template';
import { describe, expect, test } from 'vitest';
import { builtInPrefix, builtInSources } from './built-in.ts';
import { templateHostOf } from './host.ts';
import { bareHost } from './hosts.fixture.ts';

const scope = {
  host: templateHostOf(bareHost, undefined),
  variables: {},
  run: { number: 1n },
};

describe.each(Object.entries(builtInSources))('the built-in template %s', (id, source) => {
  test('reads like one of a person, and fits a host that nothing is known of', () => {
    expect(id.startsWith(builtInPrefix)).toBe(true);
    const parsed = parseTemplate(source);
    if (parsed.kind === 'bad') throw new Error(JSON.stringify(parsed.problems));
    expect(parsed.template.description).not.toBe('');
    const result = renderTemplate(parsed.template, scope);
    if (result.kind === 'bad') throw new Error(JSON.stringify(result.problems));
    expect(result.rendered.timeoutMs).toBeGreaterThan(0);
    for (const step of result.rendered.steps) {
      expect(step).toMatchObject({ destructive: false, rerunClass: RerunClass.SAFE });
      expect(step.timeoutMs).toBeGreaterThan(0);
    }
  });
});
