import { BmcProtocol, HostGoal } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bench, makeAvailable, stepAt, verified } from '../testing/bench.ts';

const image = `registry.example/os@sha256:${'1'.repeat(64)}`;

/** Whether the order of an image keeps the network before it in the host's boot order. */
function isNetworkFirst(protocol: BmcProtocol): boolean | undefined {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  const bmc = host.record.host?.spec?.bmc;
  if (bmc === undefined) throw new Error('the host has no BMC');
  bmc.protocol = protocol;
  host.apply({ kind: 'tick' });
  host.report(verified());
  makeAvailable(host);
  host.request({ kind: 'provision', image });
  expect(stepAt(host)).toBe('deploy.fetch_image');
  const { kind } = host.operation();
  return kind.case === 'runStep' ? kind.value.deployment?.networkFirst : undefined;
}

test.each([
  [BmcProtocol.IPMI, false],
  [BmcProtocol.REDFISH, false],
  [BmcProtocol.WEBHOOK, true],
  [BmcProtocol.MANUAL, true],
])('a host whose protocol is %s keeps the network first: %s', (protocol, expected) => {
  expect(isNetworkFirst(protocol)).toBe(expected);
});
