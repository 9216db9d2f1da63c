import { expect, test } from 'vitest';
import { defaultRpcLimits, rpcLimitsOf } from './limits.ts';

test('the default limits follow from the default settings', () => {
  expect(rpcLimitsOf(defaultRpcLimits)).toEqual(defaultRpcLimits);
});

test('derived limits scale with the configured ones, and stay above 0', () => {
  const small = rpcLimitsOf({
    ...{ connectionsMax: 1, connectionsPerAddressMax: 1, handshakesPerSecond: 1 },
    ...{ callsMax: 1, openCallsBurst: 1 },
  });
  for (const [name, limit] of Object.entries(small)) expect(limit, name).toBeGreaterThan(0);
  const wide = rpcLimitsOf({ ...defaultRpcLimits, connectionsMax: 32_768, callsMax: 65_536 });
  expect(wide).toMatchObject({ strangersMax: 2_048, connectionsForKnownMax: 8_192 });
  expect(wide).toMatchObject({ callsPerCallerMax: 4_096, openCallsPerAddressMax: 1_024 });
  expect(wide).toMatchObject({ handshakesMax: 16, connectionsPerAddressMax: 2_048 });
});
