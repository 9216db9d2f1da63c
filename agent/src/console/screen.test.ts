/** What people read of a console, after any bytes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MaskedStream } from './masked.ts';
import { Screen } from './screen.ts';

function screenOf(text: string, rows = 5, columns = 20): readonly string[] {
  const screen = new Screen({ rows, columns });
  screen.write(new TextEncoder().encode(text));
  return screen.lines();
}

test.each([
  ['lines', 'one\r\ntwo\r\n', ['one', 'two']],
  ['a line that is written over', 'loading 10 %\rloading 99 %', ['loading 99 %']],
  ['colours and titles', '\x1b[1;31mred\x1b[0m\x1b]0;title\x07 end', ['red end']],
  ['a menu by positions', '\x1b[2J\x1b[2;3Hboot\x1b[1;1Hmenu', ['menu', '  boot']],
  ['a long line', 'x'.repeat(25), ['x'.repeat(20), 'xxxxx']],
  ['what scrolled away', 'a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng', ['c', 'd', 'e', 'f', 'g']],
  ['a crash that the firmware cleared away', 'panic\r\n\x1b[2J\x1b[HBIOS', ['panic', 'BIOS']],
  ['an end that is erased', 'abcdef\x1b[3G\x1b[K', ['ab']],
  ['other scripts', 'Prüfung ✓', ['Prüfung ✓']],
])('the screen shows %s', (_, text, lines) => {
  expect(screenOf(text)).toEqual(lines);
});

test('any bytes give bounded plain lines', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ maxLength: 20 }).map((text) => new TextEncoder().encode(text)),
    fc
      .constantFrom('\x1b[', '\x1b]', '\x1b[9999;9999H', '\x1b[2J', '\x1bc', '\x1b[1K', '\u202e')
      .map((text) => new TextEncoder().encode(text)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const screen = new Screen({ rows: 4, columns: 10 });
      for (const bytes of pieces) screen.write(bytes);
      const lines = screen.lines();
      expect(lines.length).toBeLessThanOrEqual(4);
      for (const line of lines) {
        expect([...line].length).toBeLessThanOrEqual(10);
        expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      }
    }),
  );
});

test('a secret is masked in linear time, however often a machine writes it', () => {
  const tokens = ['deadbeefdeadbeef', 'a'.repeat(64)];
  const before = process.cpuUsage();
  for (const token of tokens) {
    for (const text of [token.repeat(256 * 64), `${token.slice(1)}b`.repeat(256 * 64)]) {
      const told = new TextDecoder().decode(new MaskedStream(token).take(Buffer.from(text)));
      expect(told.includes(token)).toBe(false);
    }
  }
  expect(process.cpuUsage(before).user / 1_000_000).toBeLessThan(5);
});

test('a secret is masked wherever the stream is cut', () => {
  const token = 'a1b2'.repeat(8);
  const text = `token=${token} quiet aa1b ${token}${token}.`;
  const secretless = text.replaceAll(token, '*'.repeat(token.length));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 30 }), (cuts) => {
      const masked = new MaskedStream(token);
      const bytes = new TextEncoder().encode(text);
      let [at, told] = [0, ''];
      for (const size of [...cuts, bytes.length]) {
        told += new TextDecoder().decode(masked.take(bytes.subarray(at, at + size)));
        at += size;
      }
      expect(told).toBe(secretless);
    }),
  );
});
