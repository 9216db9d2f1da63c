import { describe, expect, test } from 'vitest';
import { ConfigError, type ConfigReader } from '../index.ts';
import { checkConfig, problemLines, readConfigText } from './index.ts';

const read = (reader: ConfigReader) => ({
  address: even(reader.text('address')),
  listen: reader.section('listen', (listen) => ({
    port: listen.whole('port', [1, 9], 5),
    mode: listen.oneOf('mode', ['a', 'b'], 'a'),
  })),
  files: reader.sections('files', (file) => ({ name: file.text('name') })),
  words: reader.texts('words', []),
});

function even(text: string): string {
  if (text.length % 2 === 1 || text === '') throw new ConfigError('address has to be even');
  return text;
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
    expect(problems('listen: {port: x}\n')).toEqual(['1 address is missing: give a text']);
    expect(problems('address: xxx\nlisten: 7\n')).toEqual(['1 address has to be even']);
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
