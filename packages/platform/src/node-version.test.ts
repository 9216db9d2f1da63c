import { expect, test } from 'vitest';
import { nodeVersionProblem } from './node-version.ts';

test.each(['24.18.1', '24.19.0', '24.21.0', '26.10.0'])('Node %s will do', (version) => {
  expect(nodeVersionProblem(version)).toBeUndefined();
});

test.each(['20.20.2', '22.99.0', '24.17.9', '24.18.0'])('Node %s is refused', (version) => {
  expect(nodeVersionProblem(version)).toContain(`not ${version}`);
});
