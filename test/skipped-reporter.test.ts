import { expect, test } from 'vitest';
import { describeSkipped, mustFail, peerMissing, tally } from './skipped-reporter.ts';

const peer = `${peerMissing}nats-server`;

test('the reporter counts equal reasons, the most frequent first', () => {
  const skipped = tally(['not root', peer, 'not root']);
  expect(describeSkipped(skipped)).toMatch(`Skipped: 3\n  2 × not root\n  1 × ${peer}`);
  expect(describeSkipped([])).toBe('Skipped: none.');
});

test('the report ends with the command that installs missing peers, if any is missing', () => {
  const lines = describeSkipped(tally([peer, peer, 'not root'])).split('\n');
  expect(lines.at(-1)).toMatch(/^Peers that are missing: "npm run peers" installs them/);
  expect(describeSkipped(tally(['not root']))).toBe('Skipped: 1\n  1 × not root');
});

test('the reporter fails a run in CI for a missing peer only', () => {
  expect(mustFail(tally([peer]), true)).toBe(true);
  expect(mustFail(tally([peer]), false)).toBe(false);
  expect(mustFail(tally(['not root']), true)).toBe(false);
});
