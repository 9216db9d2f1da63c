/**
 * A BMC that nobody here wrote: OpenIPMI's simulator, one process for each machine. It answers IPMI
 * over the network, shows itself to its own machine in band, and switches the machine's QEMU
 * through `chassis-control.sh`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fruImage } from './fru.ts';
import type { LabNetwork } from './netns.ts';
import { runProgram, type Started, startProcess, until } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import { startRedfishService } from './redfish-service.ts';
import type { Undo } from './undo.ts';

/** The operator account of every BMC in the lab. */
export const BMC_USER = 'rackwright';
/** Its password: at most 16 letters, a limit of the simulator. */
export const BMC_PASSWORD = 'lab-Secret_1';
const READY_WAIT_MS = 60_000;
const CONTROL_SCRIPT = join(import.meta.dirname, 'chassis-control.sh');

/** A running BMC. */
export interface LabBmc {
  readonly machine: LabMachine;
  /** The address at which it answers, port 623. */
  address(): string;
  /** Ends the simulator (the machine goes on) and starts it at another address. */
  moveTo(address: string): Promise<void>;
  /** Ends it: the BMC no longer answers. The machine goes on. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/**
 * Starts the BMC of `machine`; `inBandPort` is where the machine's QEMU looks for it, and
 * `consolePort` where that shows it the machine's serial port.
 */
export async function startBmc(options: {
  readonly undo: Undo;
  readonly network: LabNetwork;
  readonly machine: LabMachine;
  readonly address: string;
  readonly inBandPort: number;
  readonly consolePort: number;
}): Promise<LabBmc> {
  const { machine, network } = options;
  const folder = join(machine.folder, 'bmc');
  mkdirSync(folder);
  const commands = join(folder, 'bmc.emu');
  writeFileSync(commands, emulatorCommands(machine));
  let address = options.address;
  let process: Started | undefined;
  const start = async (): Promise<void> => {
    const config = join(folder, 'lan.conf');
    writeFileSync(config, lanConfig(machine, address, options));
    process = startProcess(options.undo, {
      name: `ipmi_sim of ${machine.name}`,
      file: 'ipmi_sim',
      args: ['-c', config, '-f', commands, '-s', folder, '-n'],
      logFile: join(folder, 'ipmi_sim.log'),
      namespace: network.namespace,
    });
    await until(
      `an answer of the BMC of ${machine.name}`,
      READY_WAIT_MS,
      () =>
        ipmitool(network, address, ['mc', 'guid']).then(
          () => true,
          () => false,
        ),
      process.logFile,
    );
  };
  const stop = async (): Promise<void> => await process?.stop();
  const bmc: LabBmc = {
    machine,
    address: () => address,
    start,
    stop,
    moveTo: async (next) => {
      await stop();
      address = next;
      await start();
    },
  };
  await start();
  return bmc;
}

/** Lets the machine's BMC speak Redfish too, with the same account. */
export async function addRedfishService(options: {
  readonly undo: Undo;
  readonly network: LabNetwork;
  readonly machine: LabMachine;
  readonly address: string;
}): Promise<void> {
  const account = { user: BMC_USER, password: BMC_PASSWORD };
  await startRedfishService({ ...options, ...account, controlScript: CONTROL_SCRIPT });
}

/** Node gives a child a socket as standard input, which ipmitool cannot open by its name. */
const throughPipe = 'cat | "$0" "$@"';

/** Runs `ipmitool` against a BMC, as the agent does: cipher suite 3, password by standard input. */
export async function ipmitool(
  network: LabNetwork,
  address: string,
  args: readonly string[],
): Promise<string> {
  const session = ['-I', 'lanplus', '-C', '3', '-H', address, '-U', BMC_USER, '-f', '/dev/stdin'];
  return await runProgram('/bin/sh', ['-c', throughPipe, 'ipmitool', ...session, ...args], {
    namespace: network.namespace,
    input: `${BMC_PASSWORD}\n`,
    timeoutMs: 60_000,
  });
}

function lanConfig(
  machine: LabMachine,
  address: string,
  { inBandPort, consolePort }: { readonly inBandPort: number; readonly consolePort: number },
): string {
  const auths = ['callback', 'user', 'operator', 'admin'].map(
    (level) => `    allowed_auths_${level} none md2 md5 straight`,
  );
  return [
    `name "${machine.name}"`,
    'set_working_mc 0x20',
    '  startlan 1',
    `    addr ${address} 623`,
    '    priv_limit admin',
    ...auths,
    `    guid ${machine.uuid.replaceAll('-', '')}`,
    '  endlan',
    `  sol "tcp:127.0.0.1:${consolePort}" 115200`,
    `  serial 15 127.0.0.1 ${inBandPort} codec VM`,
    `  chassis_control "${CONTROL_SCRIPT} ${machine.folder} 0x20"`,
    `  user 2 true "${BMC_USER}" "${BMC_PASSWORD}" admin 10 none md2 md5 straight`,
    '',
  ].join('\n');
}

function emulatorCommands(machine: LabMachine): string {
  const fru = fruImage({ manufacturer: 'Rackwright', name: 'Lab', serial: machine.serial });
  const bytes = [...fru].map((byte) => `0x${byte.toString(16)}`).join(' ');
  return [
    'mc_setbmc 0x20',
    'mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr',
    'sel_enable 0x20 1000 0x0a',
    `mc_add_fru_data 0x20 0 ${fru.length} data ${bytes}`,
    'mc_enable 0x20',
    '',
  ].join('\n');
}
