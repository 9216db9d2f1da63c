import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Masking, maskText } from './masking.ts';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
function masked(secrets: readonly string[], pieces: readonly string[]): string {
  const masking = new Masking(secrets);
  const shown = [...pieces.map((piece) => masking.push(bytes(piece))), masking.end()];
  return Buffer.concat(shown).toString('utf8');
}

describe('masking', () => {
  test('takes a secret out, as it is and in base64', () => {
    const coded = Buffer.from('hunter2!').toString('base64');
    expect(maskText(`a hunter2! b ${coded} c`, ['hunter2!'])).toBe('a [secret] b [secret] c');
  });

  test('finds it however the pieces are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 8 }), (cuts) => {
        const text = 'before s3cret-s3cret-word after s3cret-word';
        const places = [...new Set([0, ...cuts, text.length])].sort((a, b) => a - b);
        const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
        expect(masked(['s3cret-word'], pieces)).toBe('before s3cret-[secret] after [secret]');
      }),
    );
  });

  test('takes the longer of two secrets that begin alike', () => {
    expect(masked(['abcd', 'abcdef'], ['xabc', 'defx'])).toBe('x[secret]x');
  });

  test('shows at once what cannot be the beginning of one', () => {
    const masking = new Masking(['secret']);
    expect(Buffer.from(masking.push(bytes('plain line\n'))).toString()).toBe('plain line\n');
    expect(Buffer.from(masking.push(bytes('a sec'))).toString()).toBe('a ');
    expect(Buffer.from(masking.push(bytes('ond'))).toString()).toBe('second');
  });

  test('leaves everything alone where there is nothing to hide', () => {
    expect(maskText('any text', [])).toBe('any text');
    expect(maskText('any text', [''])).toBe('any text');
  });
});
