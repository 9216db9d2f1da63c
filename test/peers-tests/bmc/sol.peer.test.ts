/** Serial over LAN: real ipmitool, OpenIPMI's ipmi_sim, and a serial port that is a socket. */
import { spawnSync } from 'node:child_process';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  type BmcConsole,
  type BmcResult,
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  Governor,
} from '@rackwright/bmc';
import { IpmiDriver } from '@rackwright/bmc/drivers';
import { nodeClock, nodeExec } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { peerMissing } from '../../skipped-reporter.ts';
import { type SimulatedBmc, startIpmiSim } from './ipmi-sim.ts';

const missing = ['ipmitool', 'ipmi_sim'].filter(
  (program) => spawnSync(program, ['-V'], { stdio: 'ignore', timeout: 10_000 }).error !== undefined,
);

const user = 'operator';
const password = 'word-that-hides';
const clock = nodeClock();

/** `port`: of the BMC. */
function driverAt(port: number): IpmiDriver {
  const limits = { ...defaultGovernorLimits, spacingMs: 5 };
  const target = { address: '127.0.0.1', port, cipherSuite: 3, user, password };
  return new IpmiDriver({
    target: { ...target, credential: 'credentials/test@1' },
    governor: new Governor(clock, limits, () => {}),
    exec: nodeExec(),
    clock,
    ipmitool: defaultIpmitoolOptions,
    readBack: defaultReadBackTimings,
  });
}

/** What the machine says again and again: what comes while nobody hears it is lost. */
const said = 'boot \x1b[1mloader\x1b[0m \xff\x01\r\n';

/** What ipmi_sim connects to as the serial port of its machine. */
async function serialPort(): Promise<{ server: Server; port: number; lines: Socket[] }> {
  const lines: Socket[] = [];
  const server = createServer((line) => {
    const talk = setInterval(() => line.write(Buffer.from(said, 'latin1')), 200);
    line.on('error', () => undefined).on('close', () => clearInterval(talk));
    lines.push(line);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port, lines };
}

function opened(result: BmcResult<BmcConsole>): BmcConsole {
  if (result.kind !== 'ok') throw new Error(`${result.message}: ${result.backendText}`);
  return result.value;
}

async function startBmc(serialPort: number): Promise<SimulatedBmc> {
  const fru = { manufacturer: 'Rackwright', product: 'Lab', serial: 'S', boardSerial: 'B' };
  const own = { user, password, guidHex: '8f14e45fceea467a9c2b3d0e55aa0f01' };
  const bmc = await startIpmiSim({
    ...{ ...own, fru: { ...fru, chassisSerial: 'C' }, behaviour: { kind: 'honest' } },
    serialPort,
  });
  await expect
    .poll(() => driverAt(bmc.port).powerState(), { timeout: 30_000 })
    .toMatchObject({
      kind: 'ok',
    });
  return bmc;
}

test('a console carries the machine’s output to one viewer, and frees the BMC', async (context) => {
  if (missing.length > 0) context.skip(`${peerMissing}${missing.join(', ')}: run npm run peers`);
  const serial = await serialPort();
  const bmc = await startBmc(serial.port);
  let heard = '';
  try {
    await expect.poll(() => serial.lines.length, { timeout: 30_000 }).toBe(1);
    const driver = driverAt(bmc.port);
    const hear = (bytes: Uint8Array): void => {
      heard += Buffer.from(bytes).toString('latin1');
    };
    const first = opened(await driver.openConsole(hear));
    await expect.poll(() => heard, { timeout: 30_000 }).toContain(`${said}${said}`);
    expect(heard).not.toContain('SOL Session');
    // It does not hold up other calls, and nobody else gets it meanwhile.
    expect(await driver.powerState()).toMatchObject({ kind: 'ok' });
    const second = await driverAt(bmc.port).openConsole(() => undefined);
    expect(second).toMatchObject({ kind: 'transient', reason: 'busy' });
    const givenUp = await driver.openConsole(() => undefined, AbortSignal.timeout(1));
    expect(givenUp).toMatchObject({ kind: 'transient', reason: 'cancelled' });
    first.close();
    await first.ended;
    opened(await driver.openConsole(() => undefined)).close();
  } finally {
    await bmc.close();
    serial.server.close();
    for (const line of serial.lines) line.destroy();
  }
});
