/**
 * iPXE scripts: how the runner is started, and how a host is sent to its own disk.
 *
 * I1 No text from outside reaches a script unless it is a plain word: iPXE expands `${…}` and
 *    splits lines into commands.
 */
import { hyphenatedMac, type Mac } from '@rackwright/dhcp';
import type { RunnerBootConfig } from './config.ts';
import type { BootDecision } from './permission.ts';

type RunnerDecision = BootDecision & { kind: 'runner' | 'discovery' };

const token = /^[A-Za-z0-9._~+/=-]+$/;

/** Downloads are tried this often before the host goes on to its disk. */
export const attemptsMax = 3;

export interface RunnerScript {
  readonly mac: Mac;
  readonly decision: RunnerDecision;
  readonly runner: RunnerBootConfig;
  /** The agent's address for the runner, `IP:PORT`. */
  readonly agentEndpoint: string;
  /** The URL of a file of the boot. */
  fileUrl(name: string): string;
  readonly nowMs: number;
}

/**
 * Loads kernel and ramdisk and starts them. Throws when the token is no plain word, which is a
 * fault of the caller.
 */
export function runnerScript(script: RunnerScript): string {
  const { decision, runner, fileUrl } = script;
  // UEFI kernels look up the ramdisk by this name among the files that iPXE has loaded.
  const args = ['initrd=initrd', ...kernelArgs(script)];
  const kernel = [`kernel ${fileUrl(runner.kernel)}`, ...args].join(' ');
  const initrd = `initrd --name initrd ${fileUrl(runner.initrd)}`;
  return lines([
    '#!ipxe',
    `echo Rackwright: ${whoStarts(decision)} starts the runner`,
    'set attempt:int32 0',
    ':fetch',
    `${kernel} && ${initrd} && boot ||`,
    'inc attempt',
    `iseq \${attempt} ${attemptsMax} && exit 1 ||`,
    'imgfree',
    'sleep 2',
    'goto fetch',
  ]);
}

/** The kernel's command line, the same for each loader. Throws as {@link runnerScript} does. */
export function kernelArgs(script: RunnerScript): string[] {
  const { decision, runner, agentEndpoint, mac, nowMs } = script;
  if (!token.test(decision.bootToken)) {
    throw new Error(`the boot token of ${decision.operationId} is not a plain word`);
  }
  return [
    `rackwright.agent=${agentEndpoint}`,
    `rackwright.fingerprint=${runner.fingerprint.toLowerCase()}`,
    `rackwright.token=${decision.bootToken}`,
    `rackwright.mac=${mac}`,
    // A host's clock may be years off, and certificates have a beginning.
    `rackwright.time=${Math.floor(nowMs / 1000)}`,
    `BOOTIF=01-${hyphenatedMac(mac)}`,
    ...runner.kernelArguments,
  ];
}

/**
 * Hands the host back to its firmware. `exit 1`, not 0: UEFI takes a loader that succeeds for the
 * end of the boot and shows its menu; one that fails makes it go on to the next boot option.
 */
export function localBootScript(): string {
  return lines(['#!ipxe', 'echo Rackwright: no boot grant, booting the local disk', 'exit 1']);
}

/** For a person at the host's console. */
export function whoStarts(decision: RunnerDecision): string {
  return decision.kind === 'discovery' ? 'a machine that is no host' : plain(decision.hostName);
}

/** Text that means nothing to iPXE. */
export function plain(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]/g, '_');
}

/** One script of its lines. */
export function lines(all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
