import { describe, expect, test } from 'vitest';
import type { ConfigReader } from '../index.ts';
import { checkConfig, problemLines, readConfigText } from './index.ts';

const read = (reader: ConfigReader) => ({
  address: even(reader, reader.text('address')),
  listen: reader.section('listen', (listen) => ({
    port: listen.whole('port', [1, 9], 5),
    mode: listen.oneOf('mode', ['a', 'b'], 'a'),
  })),
  files: reader.sections('files', (file) => ({ name: file.text('name'), tags: tags(file) })),
  words: reader.texts('words', []),
});

function even(reader: ConfigReader, text: string): string {
  if (text.length % 2 === 0 && text !== '') return text;
  return reader.refuse('address', 'has to be even', 'xx');
}

function tags(file: ConfigReader): readonly string[] {
  const all = file.texts('tags', []);
  for (const [index, tag] of all.entries()) {
    if (tag === '') file.refuse(`tags[${index}]`, 'has to be a tag');
  }
  if (all.length > 3) file.refuse('tags', 'has to have at most 3 entries');
  return all;
}

const problems = (text: string) => {
  const checked = checkConfig(text, (from) => readConfigText(from, read));
  const found = checked.kind === 'bad' ? checked.problems : [];
  return found.map(({ line, message }) => `${line} ${message}`);
};

describe('the problems of a configuration', () => {
  test('are none when it is right', () => {
    expect(problems('address: xx\nlisten: {port: 3}\n')).toEqual([]);
  });

  test('are all told, each with its line and what would be right', () => {
    expect(
      problems(
        [
          '# a comment',
          'address: xx',
          'listen:',
          '  port: 12',
          '  mode: c',
          '  prot: 1',
          'files:',
          '  - {name: one}',
          '  - nam: two',
          'words: no',
          '',
        ].join('\n'),
      ),
    ).toEqual([
      '4 listen.port has to be a whole number from 1 to 9',
      '5 listen.mode has to be one of a, b',
      '6 listen.prot is no key of this configuration; did you mean port?',
      '9 files[1].name is missing: give a text',
      '9 files[1].nam is no key of this configuration; did you mean name?',
      '10 words has to be a list of texts',
    ]);
  });

  test('are told once of a key, and with those that were found before it', () => {
    expect(problems('listen: {port: x}\n')).toEqual([
      '1 address is missing: give a text',
      '1 listen.port has to be a whole number from 1 to 9',
    ]);
    expect(problems('address: xxx\nlisten: 7\n')).toEqual([
      '1 address has to be even',
      '2 listen has to be a mapping',
    ]);
  });

  test('are told with the line of their entry, and of their key in quotes', () => {
    expect(
      problems(
        [
          'address: xx',
          'files:',
          '  - name: one',
          '    tags: [a, b, c, d]',
          '  - name: two',
          '    tags:',
          '      - a',
          '      - ""',
          '      - ""',
          '"a b": 1',
          '"a: c": 2',
          '',
        ].join('\n'),
      ),
    ).toEqual([
      '4 files[0].tags has to have at most 3 entries',
      '8 files[1].tags[1] has to be a tag',
      '9 files[1].tags[2] has to be a tag',
      '10 a b is no key of this configuration',
      '11 a: c is no key of this configuration',
    ]);
  });

  test('are told of a key with a dot, and of the section that it looks like', () => {
    expect(
      problems(['address: xx', 'listen:', '  port: 12', 'listen.port: 3', '"": 4', ''].join('\n')),
    ).toEqual([
      '3 listen.port has to be a whole number from 1 to 9',
      '4 "listen.port" is no key of this configuration',
      '5 "" is no key of this configuration',
    ]);
  });

  test('are told in one line of a key with a line break', () => {
    expect(problems('address: xx\n"a\\nb": 1\n')).toEqual([
      '2 "a\\nb" is no key of this configuration',
    ]);
  });

  test('are told with the line of an alias that is an entry of a list', () => {
    const text = 'address: xx\nlisten: &i {mode: c}\nfiles:\n  - {name: one}\n  - *i\n';
    expect(problems(text)).toEqual([
      '2 listen.mode has to be one of a, b',
      '5 files[1].name is missing: give a text',
      '5 files[1].mode is no key of this configuration',
    ]);
  });

  test('are told without a key when they are about the whole file', () => {
    expect(problems('- 1\n')).toEqual(['1 the file has to be a mapping']);
  });

  test('of something else than a section are not told of the keys that it lacks', () => {
    expect(problems('address: xx\nfiles: [7]\n')).toEqual(['2 files[0] has to be a mapping']);
  });

  test('are those of the syntax when there are any', () => {
    expect(problems('address: xx\nlisten: [\n')[0]).toMatch(/^[23] /);
  });

  test('are written as compilers write them', () => {
    expect(problemLines('a.yaml', [{ line: 3, message: 'x is missing' }])).toBe(
      'a.yaml:3: x is missing\n',
    );
  });
});
