/**
 * What every scenario works with: the laboratory, the programs under test in it, the watch, and the
 * list of what was found out.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BootWay, hasVirtualDrive } from './firmware.ts';
import { type HostView, type HostWatch, watchHosts } from './host-watch.ts';
import { BMC_PASSWORD, BMC_USER, ipmitool, type LabBmc } from './ipmi-sim.ts';
import type { Lab } from './lab.ts';
import type { MachineSpec } from './qemu.ts';
import { type Crash, RACK, type RunnerFiles, type Stack, startStack } from './stack.ts';

const CREDENTIAL = 'bmc';
/** From power-on to the end of a run; a boot takes a minute when the machine is busy. */
export const RUN_LIMIT_MS = 1_200_000;

/** What was found out, line by line. */
export interface Findings {
  /** Writes down whether what `title` says is so. */
  check(title: string, holds: boolean, detail?: string): void;
  say(text: string): void;
  readonly passed: () => number;
  readonly failed: () => number;
}

/** A laboratory with everything in it. */
export interface Site {
  readonly lab: Lab;
  readonly stack: Stack;
  readonly watch: HostWatch;
  readonly findings: Findings;
}

/** A scenario: machines, and what is to be seen. */
export interface Scenario {
  readonly machines: readonly MachineSpec[];
  /** How its machines boot; absent: as usual. */
  readonly boot?: BootWay;
  /** Further words for the runner's kernel. */
  readonly kernelArguments?: readonly string[];
  /** Who is to be killed, and where; not for the runner, which its kernel's words kill. */
  readonly crash?: Crash;
  /** Starts control plane and agent, joined; absent: those of this tree. */
  readonly startStack?: typeof startStack;
  run(site: Site): Promise<void>;
}

/** Prints findings as they come. */
export function createFindings(): Findings {
  const count = { passed: 0, failed: 0 };
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  return {
    say,
    check: (title, holds, detail = '') => {
      count[holds ? 'passed' : 'failed'] += 1;
      say(`${holds ? '  ok  ' : '  FAIL'} ${title}${holds || detail === '' ? '' : `: ${detail}`}`);
    },
    passed: () => count.passed,
    failed: () => count.failed,
  };
}

/** Starts the programs under test and makes the BMCs' credential known. */
export async function openSite(
  lab: Lab,
  files: RunnerFiles,
  findings: Findings,
  crash?: Crash,
  start = startStack,
): Promise<Site> {
  const stack = await start(lab, files, crash);
  const password = join(lab.folder, 'bmc-password');
  writeFileSync(password, BMC_PASSWORD, { mode: 0o600 });
  const secret = ['--username', BMC_USER, '--password-file', password];
  await stack.cli(['credential', 'create', CREDENTIAL, ...secret]);
  return { lab, stack, watch: watchHosts(stack), findings };
}

/** Makes a machine known under its own name, to be led to `goal`; `policy`: further options. */
export async function createHost(
  site: Site,
  bmc: LabBmc,
  goal: 'available' | 'manageable',
  policy: readonly string[] = [],
): Promise<void> {
  const { name, mac } = bmc.machine;
  const protocol = hasVirtualDrive(site.lab.boot.firmware)
    ? ['--bmc-protocol', 'redfish', '--boot-method', 'virtual-media']
    : ['--cipher-suite', '3'];
  const bmcArgs = ['--bmc', bmc.address(), '--credential', CREDENTIAL, ...protocol];
  const args = ['--rack', RACK, ...bmcArgs, '--mac', mac, '--goal', goal, ...policy];
  await site.stack.cli(['host', 'create', name, ...args]);
}

/** Switches a machine off through its BMC, so that its disk files rest. */
export async function powerOff(site: Site, bmc: LabBmc): Promise<void> {
  await ipmitool(site.lab.network, bmc.address(), ['chassis', 'power', 'off']);
}

/** True when this view shows the end of run `kind` with `outcome`. */
export function isEnded(host: HostView, kind: string, outcome: string): boolean {
  const { run } = host.status;
  return run?.kind === `RUN_KIND_${kind}` && run.outcome === `RUN_OUTCOME_${outcome}`;
}

/** True when this view shows the end of a run of this kind, whatever its outcome. */
export function hasEnded({ status }: HostView, kind: string): boolean {
  return status.run?.kind === `RUN_KIND_${kind}` && status.run.phase === 'RUN_PHASE_ENDED';
}

/** True when the host is free and, for all that was seen, was never `available`. */
export function wasNeverAvailable(views: readonly HostView[]): boolean {
  return views.every((view) => view.status.state !== 'HOST_STATE_AVAILABLE');
}
