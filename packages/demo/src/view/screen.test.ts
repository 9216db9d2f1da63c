import { expect, test } from 'vitest';
import type { Picture } from './paint.ts';
import type { HostProgress } from './progress.ts';
import { DemoScreen } from './screen.ts';

function terminal(isTerminal: boolean, columns: number, rows = 24) {
  let written = '';
  return {
    isTerminal,
    inColour: false,
    size: () => ({ columns, rows }),
    write: (text: string) => {
      written += text;
    },
    written: () => written,
  };
}

const picture = (detail: string, more: Partial<HostProgress> = {}): Picture => ({
  racks: [],
  hosts: [
    {
      ...{ name: 'h1', rack: 'r1', fraction: 0.2, state: 'cleaning', detail, mood: 'busy' },
      ...more,
    },
  ],
  elapsedMs: 1_000,
  footer: '',
});

test('the screen repaints only its own picture, and leaves the lines above it', () => {
  const screen80 = terminal(true, 80);
  const screen = new DemoScreen(screen80, false);
  screen.show(picture('1/2 a 5 %'));
  screen.say('An act');
  const text = screen80.written();
  expect(text.match(/░/g)?.length).toBeGreaterThan(0);
  expect(text).toContain('\x1b[3F\x1b[JAn act\n');
  screen.close();
  screen.say('Goodbye');
  expect(screen80.written().endsWith('\x1b[?25hGoodbye\n')).toBe(true);
});

test('the screen says that a narrow terminal is narrow, once, and goes on with lines', () => {
  const narrow = terminal(true, 59);
  const screen = new DemoScreen(narrow, true);
  screen.show(picture('1/2 a'));
  screen.show(picture('2/2 b'));
  const text = narrow.written();
  expect(text.match(/59 columns/g)).toHaveLength(1);
  expect(text).not.toContain('░');
  expect(text).toContain('1/2 a');
  expect(text).toContain('2/2 b');
});

test('the screen says once that a terminal has too few rows', () => {
  const low = terminal(true, 80, 5);
  new DemoScreen(low, false).show(picture('1/2 a'));
  expect(low.written()).toContain('5 rows');
});

test('each step is written without percent where there is no terminal, if verbose', () => {
  const pipe = terminal(false, 80);
  const screen = new DemoScreen(pipe, true);
  for (const percent of [1, 2, 3]) screen.show(picture(`1/2 a ${percent} %`));
  screen.show(picture('2/2 b'));
  expect(pipe.written().split('\n')).toHaveLength(3);
  expect(pipe.written()).not.toContain('\x1b');
});

test('each state is a line where there is no terminal, with what is wrong', () => {
  const pipe = terminal(false, 80);
  const screen = new DemoScreen(pipe, false);
  for (const detail of ['1/2 a', '2/2 b']) screen.show(picture(detail));
  screen.show(picture('no power', { mood: 'troubled' }));
  screen.show(picture('', { state: 'available', mood: 'done' }));
  const lines = pipe.written().trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/cleaning$/);
  expect(lines[1]).toMatch(/cleaning {2}no power$/);
  expect(lines[2]).toMatch(/available$/);
});
