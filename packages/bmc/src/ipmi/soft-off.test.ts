import type { Exec } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { imitatedBmc, imitatedIpmitool } from '../conformance/imitated-ipmitool.ts';
import { VirtualClock } from '../conformance/virtual-clock.ts';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import { defaultReadBackTimings } from '../read-back.ts';
import { IpmiDriver } from './driver.ts';
import { defaultIpmitoolOptions } from './options.ts';

/** A BMC that carries a soft off out, and whose answer to it is lost. */
function setUp(stopsAfterMs: number | undefined) {
  const clock = new VirtualClock();
  const bmc = imitatedBmc({ power: 'on', stopsAfterMs });
  const ipmitool = imitatedIpmitool(clock, bmc);
  const exec: Exec = {
    run: async (request, signal) => {
      const result = await ipmitool.run(request, signal);
      if (request.args.at(-1) !== '0x05') return result;
      const stderr = 'Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2)\n';
      return { kind: 'exited', code: 1, stdout: '', stderr };
    },
  };
  const driver = new IpmiDriver({
    target: {
      ...{ address: '192.0.2.1', port: 623, cipherSuite: 3 },
      ...{ user: 'u', password: 'imitated', credential: 'c@1' },
    },
    governor: new Governor(clock, defaultGovernorLimits, () => {}),
    ...{ exec, clock, ipmitool: defaultIpmitoolOptions, readBack: defaultReadBackTimings },
  });
  return { bmc, softOff: () => clock.settle(driver.softOff()) };
}

test('a soft off whose answer is lost counts as asked when the system stops', async () => {
  const { bmc, softOff } = setUp(5_000);
  expect(await softOff()).toEqual({ kind: 'ok', value: { wasRequested: true } });
  expect(bmc).toMatchObject({ power: 'off', softOffs: 1 });
});

test('a soft off whose answer is lost is open while the system stays on', async () => {
  const { softOff } = setUp(undefined);
  expect(await softOff()).toMatchObject({ kind: 'transient', reason: 'unreachable' });
});
