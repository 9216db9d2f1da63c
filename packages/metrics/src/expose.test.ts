import { expect, test } from 'vitest';
import { expose, formatFor, Registry } from './index.ts';

const prometheus2 =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;' +
  'version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1';

test.each([
  [undefined, 'prometheus'],
  ['', 'prometheus'],
  ['*/*', 'prometheus'],
  ['text/plain', 'prometheus'],
  [prometheus2, 'openMetrics'],
  ['application/openmetrics-text; version="1.0.0"', 'openMetrics'],
  ['application/openmetrics-text;version=0.0.1', 'prometheus'],
  ['application/openmetrics-text;q=0.2, text/plain;q=0.9', 'prometheus'],
  ['application/openmetrics-text;q=0', 'prometheus'],
  ['application/openmetrics-text;q=x, ,;;,=', 'prometheus'],
  ['text/html', 'prometheus'],
] as const)('%o is answered as %s', (accept, format) => {
  expect(formatFor(accept)).toBe(format);
});

test('both formats say the same, each in its own way', () => {
  const registry = new Registry();
  const hard = registry.counter('hard_total', 'A "hard"\nhelp \\.', { name: { valuesMax: 9 } });
  hard.add({ name: 'a"b\\c\nd' }, 2.5);
  registry.durations('took_seconds', 'Took.', {}, [0.5, 1]).observe({}, 0.7);
  const shared = [
    'hard_total{name="a\\"b\\\\c\\nd"} 2.5',
    'took_seconds_bucket{le="0.5"} 0',
    'took_seconds_bucket{le="1.0"} 1',
    'took_seconds_bucket{le="+Inf"} 1',
    'took_seconds_sum 0.7',
    'took_seconds_count 1',
  ];
  const plain = expose(registry.families(), 'prometheus').split('\n');
  const open = expose(registry.families(), 'openMetrics').split('\n');
  for (const line of shared) {
    expect(plain).toContain(line);
    expect(open).toContain(line);
  }
  expect(plain).toContain('# TYPE hard_total counter');
  expect(open).toContain('# TYPE hard counter');
  expect(open).toContain('# HELP hard A \\"hard\\"\\nhelp \\\\.');
  expect(open.slice(-2)).toEqual(['# EOF', '']);
  expect(plain.at(-2)).not.toBe('# EOF');
});
