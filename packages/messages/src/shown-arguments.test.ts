/** The shown arguments of steps. */
import { expect, test } from 'vitest';
import { shownArguments } from './shown-arguments.ts';

test('an argument that may hold a secret is named and not shown', () => {
  const names = ['arguments', 'body', 'content', 'environment', 'headers', 'script', 'url'];
  const given = Object.fromEntries(names.map((name) => [name, 'my secret']));
  expect(shownArguments(given, 60)).toEqual(names.map((name) => [name, '…']));
  expect(shownArguments({ body: '' }, 60)).toEqual([['body', '']]);
});

test.each([
  ['https://hooks.example.org/a/b?c=d#e', 'https://hooks.example.org/…'],
  ['https://hooks.example.org:8443?c=d', 'https://hooks.example.org:8443/…'],
  ['https://ann:word@hooks.example.org/', 'https://hooks.example.org/'],
  ['https://hooks.example.org', 'https://hooks.example.org/'],
  ['file:///etc/shadow', '…'],
])('the URL %s is shown only by where it leads: %s', (url, shown) => {
  expect(shownArguments({ url }, 60)).toEqual([['url', shown]]);
});

test('everything else is shown in one line, in the order of names, and cut', () => {
  expect(shownArguments({ reason: 'see\n  to it', path: '/etc/motd' }, 5)).toEqual([
    ['path', '/etc/…'],
    ['reason', 'see t…'],
  ]);
});
