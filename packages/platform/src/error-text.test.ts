import { expect, test } from 'vitest';
import { errorText } from './error-text.ts';

const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
const circular = new Error('a');
circular.cause = new Error('b', { cause: circular });
const withBadCause = Object.defineProperty(new Error('no route'), 'cause', {
  get: () => {
    throw new Error('no');
  },
});
const withBadMessage = Object.assign(new Error('x'), { message: { code: 7 } });
const unspeakable = {
  toString: () => {
    throw new Error('no');
  },
};

test.each<[string, unknown, string]>([
  ['a message', new Error('no route'), 'no route'],
  [
    'its causes',
    new Error('no list', { cause: new Error('fetch failed', { cause: refused }) }),
    '',
  ],
  ['a cause once', new Error('no key: EACCES', { cause: new Error('EACCES') }), 'no key: EACCES'],
  [
    'a cause that is no error',
    new Error('stopped', { cause: 'by a person' }),
    'stopped: by a person',
  ],
  [
    'an error with only a cause',
    new Error('', { cause: new Error('it is full') }),
    'Error: it is full',
  ],
  ['an error without a message', new TypeError(), 'TypeError'],
  ['an error of its own cause', circular, 'a: b'],
  ['a text', 'late', 'late'],
  ['nothing', undefined, 'undefined'],
  ['what has no text', unspeakable, 'no text can be made of it'],
  ['an error whose cause cannot be read', withBadCause, 'no route'],
  ['an error whose message is no text', withBadMessage, '[object Object]'],
])('the error text shows %s', (_name, caught, text) => {
  expect(errorText(caught)).toBe(text || 'no list: fetch failed: ECONNREFUSED');
});

test('the text of a long chain of causes is cut', () => {
  let error = new Error('0');
  for (let depth = 1; depth < 100; depth += 1) error = new Error(`<${depth}>`, { cause: error });
  expect(errorText(error).split(': ')).toHaveLength(9);
});
