import { expect, test } from 'vitest';
import { missingTexts } from './expected.ts';

const output = 'hosts/h1: waits\n  waits for the BMC, since 2s ago\nstate    available';

test.for([
  [['waits for the BMC'], []],
  [['state available', 'since'], []],
  [['waits for the agent', 'state available'], ['waits for the agent']],
  [[''], []],
] as const)('the output is searched for the texts %j, and lacks %j', ([texts, lacking]) => {
  expect(missingTexts(output, texts)).toEqual(lacking);
});
