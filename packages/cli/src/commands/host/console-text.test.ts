import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConsoleText, EndKeys } from './console-text.ts';

function shown(text: string, isTerminal = true): string {
  return new ConsoleText(isTerminal).take(new TextEncoder().encode(text));
}

test.each([
  ['colours and positions', '\x1b[2J\x1b[1;31mred\x1b[0m\r\n', '\x1b[2J\x1b[1;31mred\x1b[0m\r\n'],
  ['line drawing', '\x1b(0lqk\x1b(B', '\x1b(0lqk\x1b(B'],
  ['no questions to the terminal', 'a\x1b[6n\x1b[c\x1b[>0q\x1b[14t\x1bZ\x05b', 'ab'],
  [
    'no questions by rare functions',
    'a\x1b[1;1;1;1;1;1*y\x1b[1$w\x1b[?u\x1b[?4m\x1b[#R\x1b[?2;1;0S\x1b[?1004h\x1b[?25;1003h\x1b[1x',
    'a',
  ],
  ['no printing', 'a\x1b[5ib\x1b[4i\x1b[i', 'ab'],
  [
    'the other screen and a hidden cursor',
    '\x1b[?1049h\x1b[?25l\x1b[?7;25h',
    '\x1b[?1049h\x1b[?25l\x1b[?7;25h',
  ],
  ['no titles and clipboards', 'a\x1b]52;c;ZXZpbA==\x07b\x1bP+q\x1b\\c', 'abc'],
  ['none by 8-bit controls', 'a\u009d0;x\u009cb\u009b6nc\u009b1md', 'abc\x1b[1md'],
  ['what follows a string that was cut off', '\x1b]0;half\nnext\n', 'next\n'],
  ['what follows an endless sequence', `\x1b[${'1;'.repeat(50)}after`, `;${'1;'.repeat(18)}after`],
])('a terminal gets %s', (_, text, expected) => {
  expect(shown(text)).toBe(expected);
});

test('a file gets text alone', () => {
  const text = '\x1b[2J\x1b[1;31mred\x1b[0m\r\n\x1b(0q\x1b(B\tend\x1bc\x07\x7f';
  expect(shown(text, false)).toBe('red\nq\tend');
});

test('any bytes, wherever they are cut, give the same, and nothing that acts', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc
      .constantFrom('\x1b[6n', '\x1b]52;c;', '\x1b[', '\x1b', '\x1bP', '\u009b', 'text', '\x1b(')
      .map((text) => new TextEncoder().encode(text)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.boolean(), (pieces, isTerminal) => {
      const whole = new ConsoleText(isTerminal).take(Buffer.concat(pieces));
      const cut = new ConsoleText(isTerminal);
      expect(pieces.map((bytes) => cut.take(bytes)).join('')).toBe(whole);
      expect(whole).not.toMatch(
        /[\x00-\x07\x0e-\x1a\x80-\x9f]|\x1b[\]PX^_Z]|\x1b\[[ -?]*[cinqtwxy{|]/,
      );
      if (!isTerminal) expect(whole).not.toMatch(/[^\P{Cc}\n\t]/u);
    }),
  );
});

test.each([
  ['~. at the beginning', '~.', true],
  ['~. after Enter', 'text\r~.', true],
  ['Ctrl-C anywhere', 'te\x03', true],
  ['~. in a line', 'a~.', false],
  ['~ and something else', '~x.', false],
])('%s ends the view: %#', (_, typed, ends) => {
  const keys = new EndKeys();
  expect([...typed].map((key) => keys.take(key)).includes(true)).toBe(ends);
  expect(new EndKeys().take(typed)).toBe(ends);
});
