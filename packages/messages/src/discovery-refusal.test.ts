/** What counts as a refusal of a discovered machine (S1, S2). */
import { expect, test } from 'vitest';
import { discoveryRefusalOf } from './discovery-refusal.ts';
import { DiscoveryRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';

const { FULL, UNSPECIFIED } = DiscoveryRefusalKind;

test('without a kind and a text no discovered machine is refused', () => {
  expect(discoveryRefusalOf(UNSPECIFIED, '')).toBeUndefined();
});

test.each([FULL, 99 as DiscoveryRefusalKind])(
  'kind %s refuses a discovered machine, with a text for people',
  (cause) => {
    expect(discoveryRefusalOf(cause, 'why')).toEqual({ cause, text: 'why' });
    expect(discoveryRefusalOf(cause, '')).toEqual({ cause, text: 'the machine is refused' });
  },
);

test('a text without a kind refuses a discovered machine', () => {
  expect(discoveryRefusalOf(UNSPECIFIED, 'why')).toEqual({ cause: UNSPECIFIED, text: 'why' });
});
