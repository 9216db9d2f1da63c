import { expect, test } from 'vitest';
import { isGuestReset } from './qmp.ts';

test('only a reset that the guest asked for counts', () => {
  const event = (name: string, guest: boolean) =>
    JSON.stringify({ event: name, data: { guest, reason: 'guest-reset' }, timestamp: {} });
  expect(isGuestReset(event('RESET', true))).toBe(true);
  expect(isGuestReset(event('RESET', false))).toBe(false);
  expect(isGuestReset(event('SHUTDOWN', true))).toBe(false);
  expect(isGuestReset('{"return": {}}')).toBe(false);
  expect(isGuestReset('{"event": "RE')).toBe(false);
});
