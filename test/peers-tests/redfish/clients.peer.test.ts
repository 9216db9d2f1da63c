/**
 * The simulated Redfish BMC before clients that others wrote: python3-sushy (OpenStack's) and
 * redfishtool (DMTF's). What they asked and got is kept beside this file.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, type TestContext, test } from 'vitest';
import { peerMissing } from '../../skipped-reporter.ts';
import { peer, runPeer } from '../peer.ts';
import {
  password,
  requestLines,
  type SimulatedHost,
  startSimulatedHost,
  user,
} from './simulated-host.ts';

const run = promisify(execFile);
const here = new URL('.', import.meta.url).pathname;
/** Debian's own, where its packages are. */
const python = '/usr/bin/python3';
const timeout = 600_000;
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function start(...habits: Parameters<typeof startSimulatedHost>): Promise<SimulatedHost> {
  const host = await startSimulatedHost(...habits);
  closers.push(() => host.bmc.close());
  return host;
}

function needSushy(context: TestContext): void {
  const found = spawnSync(python, ['-c', 'import sushy'], { stdio: 'ignore', timeout });
  if (found.status !== 0) context.skip(`${peerMissing}python3-sushy: run npm run peers`);
}

async function runSushy({ bmc }: SimulatedHost): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-sushy-'));
  closers.push(() => rm(folder, { recursive: true }));
  const certificate = join(folder, 'bmc.pem');
  await writeFile(certificate, bmc.certificatePem);
  const url = `https://${bmc.address}:${bmc.port}`;
  const args = [join(here, 'sushy-client.py'), url, certificate, user, password];
  const env = { PATH: '/usr/bin:/bin', PYTHONDONTWRITEBYTECODE: '1' };
  const { stdout } = await run(python, args, { timeout, env });
  return stdout;
}

describe('python3-sushy', () => {
  test('reads and switches the simulated BMC', { timeout }, async (context) => {
    needSushy(context);
    const host = await start();
    const said = await runSushy(host);
    const record = ['# What python3-sushy was told', said, '# What the machine went through'];
    const text = [...record, ...host.events, '', '# What was asked', ...requestLines(host), ''];
    await expect(text.join('\n')).toMatchFileSnapshot('sushy.txt');
  });

  test('copes with its odder habits', { timeout }, async (context) => {
    needSushy(context);
    const host = await start({
      onceReadsBackAs: 'Continuous',
      etags: 'weak',
      comparesStrongly: true,
      resetTypesIn: 'actionInfo',
    });
    const said = await runSushy(host);
    expect(said).toContain("set_system_boot_options Pxe -> ['Continuous', 'Pxe', 'UEFI']");
    expect(host.events).toEqual(['on, booting pxe (uefi)', 'off']);
  });
});

/** redfishtool's arguments, and what of its answer is worth keeping. */
const commands: readonly (readonly [string, RegExp])[] = [
  ['versions', /"v1": ".*"/],
  ['root', /"RedfishVersion": ".*"/],
  ['Systems list', /"@odata.id": ".*1"/],
  ['Systems -1 get', /"PowerState": ".*"/],
  ['Systems -I 1 setBootOverride Once Pxe', /"BootSourceOverrideTarget": ".*"/],
  ['Systems -I 1 setAssetTag rack-7', /"AssetTag": ".*"/],
  ['Systems -I 1 reset On', /^/],
  ['Systems -M SerialNumber:HOST-0001 -P PowerState', /"PowerState": ".*"/],
  ['Systems -I 1 Processors -a', /"TotalCores": .*\d/],
  ['Chassis -I 1 -P SerialNumber', /"SerialNumber": ".*"/],
  ['Managers -I 1 -P FirmwareVersion', /"FirmwareVersion": ".*"/],
  ['Systems -I 1 reset ForceOff', /^/],
  ['Systems -I 1 setBootOverride Once BiosSetup', /is not supported by the remote service/],
];

describe('redfishtool', () => {
  for (const authentication of ['Session', 'Basic']) {
    test(`reads and switches the simulated BMC (${authentication})`, {
      timeout,
    }, async (context) => {
      const tool = peer('redfishtool');
      if (tool.kind === 'missing') context.skip(tool.reason);
      const host = await start({ powerDelayMs: [0, 0] });
      const lines: string[] = [];
      for (const [command, kept] of commands) {
        const before = host.bmc.calls().length;
        const { code, output } = await redfishtool(tool, host, authentication, command);
        lines.push(`${command} -> code ${code} ${kept.exec(output)?.[0] ?? 'NOTHING'}`.trim());
        const asked = host.bmc.calls().slice(before);
        for (const { method, path, status } of asked) lines.push(`  ${method} ${path} ${status}`);
      }
      const text = [...lines, '', '# What the machine went through', ...host.events, ''];
      const name = `redfishtool-${authentication.toLowerCase()}.txt`;
      await expect(text.join('\n')).toMatchFileSnapshot(name);
    });
  }
});

function redfishtool(
  tool: ReturnType<typeof peer>,
  { bmc }: SimulatedHost,
  authentication: string,
  command: string,
) {
  if (tool.kind === 'missing') throw new Error(tool.reason);
  const place = ['-r', `${bmc.address}:${bmc.port}`, '-S', 'Always', '-n'];
  const account = ['-u', user, '-p', password, '-A', authentication];
  return runPeer(tool.path, [...place, ...account, ...command.split(' ')], timeout);
}
