import { describe, expect, test } from 'vitest';
import { runOver } from './command-io.fixture.ts';
import { manPages } from './man.ts';
import { routeNames } from './routes.ts';

describe('man pages', async () => {
  const pages = await manPages('1.2.3', '2026-01-31');

  test('are one for the command and one for each word after it', () => {
    expect(pages.map(({ name }) => name)).toEqual([
      'rackwright.1',
      ...routeNames.map((name) => `rackwright-${name}.1`),
    ]);
  });

  test('name every command and flag that help names', async () => {
    const plain = ({ text }: { text: string }) => text.replaceAll('\\-', '-');
    const host = plain(pages.find(({ name }) => name === 'rackwright-host.1') ?? { text: '' });
    const help = (await runOver(['host', '--help'])).out.split('COMMANDS\n')[1] ?? '';
    for (const [, name] of help.matchAll(/^ {2}(\S+) {2,}/gm)) {
      if (name !== 'power' && name !== 'bmc' && name !== 'plan')
        expect(host).toContain(`.SS "rackwright host ${name}"`);
    }
    const clean = (await runOver(['host', 'clean', '--help'])).out;
    for (const [flag] of clean.matchAll(/--(?!help|no-)[a-z-]+/g)) expect(host).toContain(flag);
  });

  test('have no line that roff takes for a request of its own', () => {
    const requests = /^\.(TH|SH|SS|TP|PP|B|BR|I)( |$)/;
    for (const { text } of pages) {
      for (const line of text.split('\n')) {
        if (/^[.']/.test(line)) expect(line).toMatch(requests);
      }
      expect(text).not.toMatch(/[^\n -~]/);
    }
  });
});
