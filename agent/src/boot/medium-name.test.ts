import { expect, test } from 'vitest';
import { isOwnMedium, mediumName } from './medium-name.ts';

const place = 'http://192.0.2.1:8080/files/';
const ours = place + mediumName('0123456789abcdef');

test.each([
  [ours, true],
  [place + mediumName('fedcba9876543210'), true],
  [`http://192.0.2.2:8080/files/${mediumName('0123456789abcdef')}`, false],
  [`http://192.0.2.1:8080/files/x/${mediumName('0123456789abcdef')}`, false],
  [`${place}debian-12.iso`, false],
  [`${ours}?x`, false],
  [place, false],
  ['', false],
])('the name of a medium says whether the agent that serves %s made it: %s', (url, own) => {
  expect(isOwnMedium(url, ours)).toBe(own);
});
