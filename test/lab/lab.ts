/**
 * A laboratory: real firmware, real BMC protocol, a site's own DHCP server; in a network namespace.
 * What is tested (agent, control plane) the caller starts into it.
 *
 * 1. All that is started or made is on `undo`; after `stop()` nothing is left, on the machine or in
 *    its file system.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DirectBoot, startDhcpServer } from './dhcp-server.ts';
import {
  architectureOf,
  type BootWay,
  hasVirtualDrive,
  isSecure,
  siteWords,
  speaksIpv6,
  USUAL_BOOT,
} from './firmware.ts';
import { addRedfishService, type LabBmc, startBmc } from './ipmi-sim.ts';
import { chooseAccelerator } from './kvm.ts';
import { bmcAddress, type LabNetwork, makeNetwork } from './netns.ts';
import { type LabMachine, type MachineSpec, makeMachine } from './qemu.ts';
import { startRouter } from './radvd.ts';
import { startSwitch } from './switch.ts';
import { createUndo, type Undo } from './undo.ts';

const CACHE = join(import.meta.dirname, '../../.cache/lab');
const IN_BAND_PORT = 9100;
const CONSOLE_PORT = 9300;
const SIGNAL_EXIT_CODE = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** A running laboratory. */
export interface Lab {
  readonly folder: string;
  readonly network: LabNetwork;
  readonly accelerator: 'kvm' | 'tcg';
  readonly boot: BootWay;
  readonly machines: readonly LabMachine[];
  /** `bmcs[n]` belongs to `machines[n]`. */
  readonly bmcs: readonly LabBmc[];
  /** For what the caller starts into the lab. */
  readonly undo: Undo;
  /** Takes everything back; answers what could not be. */
  stop(): Promise<readonly string[]>;
}

/**
 * Starts a laboratory. `vmlinuz` is any bootable kernel, for the probe of KVM; without one there is
 * no probe and QEMU emulates.
 */
export async function startLab(options: {
  readonly machines: readonly MachineSpec[];
  readonly vmlinuz?: string;
  readonly directBoot?: DirectBoot;
  /** How machines boot; default {@link USUAL_BOOT}. */
  readonly boot?: BootWay;
  /** Folder that gets a copy of all logs at the end, however it comes. */
  readonly keep?: string;
}): Promise<Lab> {
  if (process.getuid?.() !== 0) throw new Error('the lab needs root: it makes network namespaces');
  const { boot = USUAL_BOOT } = options;
  const undo = createUndo();
  const forgetSignals = stopOnSignals(undo);
  try {
    const folder = mkdtempSync(join(tmpdir(), 'rackwright-lab-'));
    undo.add('remove the folder', () => rmSync(folder, { recursive: true, force: true }));
    const { keep } = options;
    if (keep !== undefined) undo.add('keep the logs', () => keepLogs(folder, keep));
    // What keeps the variables of Secure Boot safe, system management mode, is only emulated.
    const isForeign = architectureOf(boot.firmware) === 'arm64';
    const isEmulated = options.vmlinuz === undefined || isSecure(boot.firmware) || isForeign;
    const accelerator = isEmulated ? 'tcg' : await chooseAccelerator(options.vmlinuz, CACHE);
    const network = await makeNetwork(undo, options.machines.length);
    const managed = speaksIpv6(boot.firmware) ? { managedPrefix: 'fd77::/64' } : {};
    const router = { namespace: network.siteNamespace, interface: 'site0', folder };
    startRouter(undo, { ...router, ...managed });
    // Were it there in reservation mode, the agent would keep silent beside it.
    if (boot.dhcp !== 'reservation') {
      startDhcpServer(undo, network, folder, options.directBoot, siteWords(boot.firmware));
    }
    const machines: LabMachine[] = [];
    const bmcs: LabBmc[] = [];
    for (const [index, spec] of options.machines.entries()) {
      const ports = { inBandPort: IN_BAND_PORT + index, consolePort: CONSOLE_PORT + index };
      const { firmware } = boot;
      const where = { index, labFolder: folder, accelerator, ...ports };
      const machine = makeMachine({ spec, firmware, ...where });
      const address = bmcAddress(index);
      bmcs.push(await startBmc({ undo, network, machine, address, ...ports }));
      if (hasVirtualDrive(firmware)) await addRedfishService({ undo, network, machine, address });
      machines.push(machine);
    }
    startSwitch(undo, { namespace: network.namespace, folder }, machines);
    const stop = async (): Promise<readonly string[]> => {
      const failures = await undo.run();
      forgetSignals(); // not before: a signal while we tidy up must not stop that
      return failures;
    };
    return { folder, network, accelerator, boot, machines, bmcs, undo, stop };
  } catch (error) {
    await undo.run();
    forgetSignals();
    throw error;
  }
}

/** Two BMCs exchange their addresses, as when somebody swaps their cables. */
export async function crossBmcs(a: LabBmc, b: LabBmc): Promise<void> {
  const [addressOfA, addressOfB] = [a.address(), b.address()];
  await a.stop();
  await b.moveTo(addressOfA);
  await a.moveTo(addressOfB);
}

/** Copies everything but disks and sockets, for whoever wants to know what happened. */
function keepLogs(folder: string, to: string): void {
  cpSync(folder, to, {
    recursive: true,
    filter: (path) => !/\.(raw|sock|blocklog|fd|deb)$|\/container$/.test(path),
  });
}

/** Takes everything back when the lab is told to end. Answers how to stop listening. */
function stopOnSignals(undo: Undo): () => void {
  const handlers = Object.entries(SIGNAL_EXIT_CODE).map(([signal, code]) => {
    const handler = (): void =>
      void undo.run().then((failures) => {
        for (const failure of failures) process.stderr.write(`lab: ${failure}\n`);
        process.exit(code);
      });
    process.on(signal, handler);
    return () => void process.off(signal, handler);
  });
  return () => {
    for (const forget of handlers) forget();
  };
}
