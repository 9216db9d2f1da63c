import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, type TestContext, test } from 'vitest';
import { ipmitool } from './ipmi-sim.ts';
import { crossBmcs, type Lab, startLab } from './lab.ts';
import { labNamespaces } from './netns.ts';
import { until } from './processes.ts';
import { usualDisks } from './qemu-disks.ts';

const POWER_WAIT_MS = 120_000;
const PROGRAMS = ['qemu-system-x86_64', 'ipmi_sim', 'ipmitool', 'dnsmasq', 'radvd', 'setpriv'];

function needsLab(context: TestContext): void {
  const missing = PROGRAMS.filter((one) => spawnSync('which', [one]).status !== 0);
  if (missing.length > 0) context.skip(`peer missing: ${missing.join(', ')}: run npm run peers`);
  if (process.getuid?.() !== 0) context.skip('not root');
  if (!existsSync('/dev/net/tun')) context.skip('no /dev/net/tun');
}

async function power(lab: Lab, address: string): Promise<string> {
  return (await ipmitool(lab.network, address, ['chassis', 'power', 'status'])).trim();
}

/** Processes that carry the folder of the lab in their arguments. */
function processesOf(folder: string): string[] {
  const all = spawnSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' }).stdout.split('\n');
  return all.filter((line) => line.includes(folder));
}

test('a BMC switches its machine, and after a swap answers elsewhere', async (context) => {
  needsLab(context);
  const disks = usualDisks(8);
  const lab = await startLab({
    machines: [
      { name: 'a', disks },
      { name: 'b', disks },
    ],
  });
  try {
    const [a, b] = lab.bmcs;
    if (a === undefined || b === undefined) throw new Error('two machines were asked for');
    const [first, second] = [a.address(), b.address()];
    expect(await power(lab, first)).toBe('Chassis Power is off');
    expect(await ipmitool(lab.network, first, ['mc', 'guid'])).toContain(a.machine.uuid);
    await ipmitool(lab.network, first, ['chassis', 'bootdev', 'pxe']);
    await ipmitool(lab.network, first, ['chassis', 'power', 'on']);
    expect(await power(lab, first)).toBe('Chassis Power is on');
    await until('the banner of iPXE on the console', POWER_WAIT_MS, () =>
      readFileSync(a.machine.serialLog, 'latin1').includes('iPXE'),
    );

    await crossBmcs(a, b);
    expect(await ipmitool(lab.network, first, ['mc', 'guid'])).toContain(b.machine.uuid);
    expect(await power(lab, first)).toBe('Chassis Power is off');
    expect(await power(lab, second)).toBe('Chassis Power is on');
    await ipmitool(lab.network, second, ['chassis', 'power', 'off']);
    expect(await power(lab, second)).toBe('Chassis Power is off');
    expect([a.machine.boots(), b.machine.boots()]).toEqual([1, 0]);
  } finally {
    expect(await lab.stop()).toEqual([]);
  }
  expect(existsSync(lab.folder)).toBe(false);
  expect(processesOf(lab.folder)).toEqual([]);
  expect(await labNamespaces()).not.toContain(lab.network.namespace);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} leaves nothing of a lab behind`, async (context) => {
    needsLab(context);
    await endsClean(signal);
  });
}

test('the remains of a killed lab are removed by the next one', async (context) => {
  needsLab(context);
  const { child, folder, namespace } = await startFixture();
  child.kill('SIGKILL');
  await once(child, 'exit');
  const next = await startLab({ machines: [] });
  await next.stop();
  expect(processesOf(folder)).toEqual([]);
  expect((await labNamespaces()).filter((one) => one.startsWith(namespace))).toEqual([]);
  rmSync(folder, { recursive: true });
});

async function startFixture(): Promise<{
  readonly child: ChildProcess;
  readonly folder: string;
  readonly namespace: string;
}> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('./lab.fixture.ts'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, ...(JSON.parse(line.toString()) as { folder: string; namespace: string }) };
}

async function endsClean(signal: NodeJS.Signals): Promise<void> {
  const { child, folder, namespace } = await startFixture();
  expect(processesOf(folder).length).toBeGreaterThan(0);
  child.kill(signal);
  await once(child, 'exit');
  expect(processesOf(folder)).toEqual([]);
  expect(existsSync(folder)).toBe(false);
  expect((await labNamespaces()).filter((one) => one.startsWith(namespace))).toEqual([]);
}
