import { expect, test } from 'vitest';
import { agentUri, rackOfUris } from './authority.ts';

test.each<[string, readonly string[], string | undefined]>([
  ['of one rack’s agent', [agentUri('r1')], 'r1'],
  ['without a name', [], undefined],
  ['of two racks at once', [agentUri('r1'), agentUri('r2')], undefined],
  ['of something else', ['spiffe://example/racks/r1'], undefined],
])('a certificate %s names the agent of one rack, or none', (_name, uris, rackId) => {
  expect(rackOfUris(uris)).toBe(rackId);
});
