import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig as parseAgent } from '@rackwright/agent';
import { parseConfig as parseControlPlane } from '@rackwright/controlplane';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const folder = join(import.meta.dirname, '../../packages/debian/files');
const programs = [
  ['agent', parseAgent, 'serverAddress: 192.0.2.1\n'],
  ['controlplane', parseControlPlane, ''],
] as const;
const shipped = (name: string): string => readFileSync(join(folder, name, `${name}.yaml`), 'utf8');

/** The file with every key that it shows, in place of its comments. */
const uncommented = (text: string): string =>
  text
    .split('\n')
    .flatMap((line) => /^#((?: {2})*[A-Za-z]\w*:.*)$/.exec(line)?.[1] ?? [])
    .join('\n');

/** The examples: what stands behind "#=", one for each run of lines. */
const examples = (text: string): string[] =>
  text
    .split(/\n(?!#=)/)
    .map((part) =>
      part
        .split('\n')
        .filter((line) => line.startsWith('#= '))
        .map((line) => line.slice(3))
        .join('\n'),
    )
    .filter((part) => part !== '');

/** Every path of `value` down to what is no mapping. */
const paths = (value: unknown, at = ''): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([key, below]) => paths(below, `${at}.${key}`))
    : [at];

describe.each(programs)(
  'the configuration file that is shipped for %s',
  (name, parseConfig, own) => {
    const text = shipped(name);
    const active: Record<string, unknown> = parse(text) ?? {};

    test('is as it is shipped nothing but defaults and what the package brings', () => {
      const names = name === 'agent' ? ['loaders', 'loaderFiles', 'files'] : [];
      expect(Object.keys(active)).toEqual(names);
    });

    test('shows every key, and with each its default', () => {
      const all: object = { ...parse(uncommented(text)), ...active };
      const defaults = parseConfig(JSON.stringify({ ...active, ...parse(own) }));
      expect(parseConfig(JSON.stringify(all))).toEqual(defaults);
    });

    /** What the program says of a file that sets this key, too; empty if it takes it. */
    const refusal = (path: string): string => {
      const names = path.split('.').slice(1);
      const below = names.reduceRight<unknown>((value, key) => ({ [key]: value }), 1);
      try {
        parseConfig(JSON.stringify({ ...active, ...parse(own), ...(below as object) }));
        return '';
      } catch (error) {
        return String(error);
      }
    };

    test('shows as many keys as the program has', () => {
      const all: object = { ...parse(uncommented(text)), ...active };
      // A key that the file does not show would keep its value when all shown ones are changed, so
      // each shown one is taken away in its turn and its absence has to be the default.
      const shown = paths(all).filter((path) => !/^\.(loaders|loaderFiles|files)/.test(path));
      const known = paths(parseConfig(JSON.stringify({ ...active, ...parse(own) }))).filter(
        (path) => !/^\.(loaders|loaderFiles|files)/.test(path),
      );
      // The agent's file has the section "bmc" flat.
      const flat = (list: string[]) => list.filter((path) => !path.startsWith('.bmc.')).sort();
      // Some bounds follow from the keys that are shown: a file that sets one of them is refused.
      const isDerived = (path: string) => /is no key|is derived/.test(refusal(path));
      const unknown = known.filter((path) => !shown.includes(path) && isDerived(path));
      const settable = known.filter((path) => !unknown.includes(path));
      expect(flat(shown)).toEqual(flat(settable));
    });

    test('has examples that the program takes', () => {
      const found = examples(text);
      expect(found.length).toBeGreaterThan(1);
      for (const example of found) {
        const shown: object = parse(example);
        // A list of interfaces stands in place of one address.
        const base = 'interfaces' in shown ? {} : parse(own);
        const all = { ...active, ...base, ...shown };
        expect(() => parseConfig(JSON.stringify(all)), example).not.toThrow();
      }
    });
  },
);
