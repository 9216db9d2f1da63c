import type { BmcResult, GovernedCalls } from '@rackwright/bmc';
import { expect, test } from 'vitest';
import { type BmcCall, meteredCalls } from './bmc-meter.ts';

const ok = { kind: 'ok', value: 'on' } as const;
const texts = { message: 'no', backendText: '' };
const refused: BmcResult<never> = { kind: 'failed', type: 'authentication', ...texts };
const full: BmcResult<never> = { kind: 'transient', reason: 'queueFull', ...texts };

const rest = { restMs: 0 };

test('a call is shown with its time and reason; one that was never sent has no time', async () => {
  const told: BmcCall[] = [];
  const clock = { ms: 0, suspendAwareMs: () => clock.ms };
  const calls: GovernedCalls = { run: (_credential, act) => act() };
  const metered = meteredCalls(calls, 'redfish', clock, (call) => told.push(call));
  const act = async () => {
    clock.ms += 250;
    return ok;
  };
  expect(await metered.run('c', act, rest)).toEqual(ok);
  await metered.run('c', async () => refused, rest);
  const never: GovernedCalls = { run: async () => full };
  await meteredCalls(never, 'ipmi', clock, (call) => told.push(call)).run('c', act, rest);
  expect(told).toEqual([
    { protocol: 'redfish', result: 'ok', reason: undefined, seconds: 0.25 },
    { protocol: 'redfish', result: 'failed', reason: 'authentication', seconds: 0 },
    { protocol: 'ipmi', result: 'transient', reason: 'queueFull', seconds: undefined },
  ]);
});
