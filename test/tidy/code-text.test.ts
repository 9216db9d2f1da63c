import { expect, test } from 'vitest';
import { codeOf, commentBlocksOf } from './code-text.ts';

test('the code of a file has blanks for comments and the contents of texts', () => {
  expect(codeOf("a('x//y'); // z\n/* b\nc */ d")).toBe("a('    ');     \n    \n     d");
});

test('the scanner keeps the code inside templates, nested ones too', () => {
  const code = codeOf('f(`one ${two(`three ${four}`)} five`) + six');
  expect(code).toContain('two(');
  expect(code).toContain('four');
  expect(code).toContain('+ six');
  for (const word of ['one', 'three', 'five']) expect(code).not.toContain(word);
});

test('the scanner takes braces inside a template expression', () => {
  expect(codeOf('`${ { a: 1 }.a } text` + end')).toContain('+ end');
});

test('the scanner takes escaped quotes', () => {
  expect(codeOf("'it\\'s' + end")).toBe("'     ' + end");
});

test('the scanner tells regular expressions from divisions', () => {
  expect(codeOf('x.replace(/[\'"]/g, y) + z')).toContain('+ z');
  expect(codeOf('x.replace(/[\'"]/g, y)')).not.toContain('"');
  expect(codeOf('a / b / c')).toBe('a / b / c');
  expect(codeOf('return /[/]x/.test(a)')).toContain('.test(a)');
});

test('the scanner keeps every line break', () => {
  const text = '/* a\n*/ `b\nc` // d\n"e"\n';
  expect(codeOf(text).split('\n')).toHaveLength(text.split('\n').length);
});

test('the scanner finds comments with their lines, and joins those on consecutive lines', () => {
  const text = "a; // b\nconst c = 'https://d';\n/* e\n * f */\n`// g ${h /* i */}`\nj;";
  expect(commentBlocksOf(text).map(({ first, last }) => [first, last])).toEqual([
    [1, 1],
    [3, 4],
    [5, 5],
  ]);
  const joined = '// a\n  // b\n\n// c\nd; // e\n';
  expect(commentBlocksOf(joined).map(({ text }) => text)).toEqual(['// a\n  // b', '// c', '// e']);
});
