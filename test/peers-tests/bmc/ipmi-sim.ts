/**
 * Starts OpenIPMI's `ipmi_sim` for a BMC whose device is a folder: what the control script writes
 * there is the device's own side, which tests read without asking the BMC.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FruTexts, fruCommand } from './fru.ts';

export type Behaviour =
  | { readonly kind: 'honest' }
  /** Takes every command and carries out none. */
  | { readonly kind: 'lying' }
  /** Shows a power change so much later. */
  | { readonly kind: 'slow'; readonly seconds: number };

export interface SimulatedBmc {
  readonly port: number;
  /** A file's text of the device's folder, or undefined. */
  read(name: 'power' | 'boot' | 'log' | 'soft'): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface SimulatedBmcOptions {
  readonly user: string;
  readonly password: string;
  readonly guidHex: string;
  readonly fru: FruTexts;
  readonly behaviour: Behaviour;
  /** TCP port of the machine's serial port; absent: serial over LAN is not offered. */
  readonly serialPort?: number;
}

export async function startIpmiSim(options: SimulatedBmcOptions): Promise<SimulatedBmc> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bmc-'));
  const port = await freeUdpPort();
  await mkdir(join(folder, 'state'));
  const script = join(folder, 'control.sh');
  await writeFile(script, controlScript(folder, options.behaviour), { mode: 0o700 });
  await writeFile(join(folder, 'lan.conf'), lanConfiguration(options, port, script));
  await writeFile(join(folder, 'commands.emu'), emulation(options));
  const args = ['-c', 'lan.conf', '-f', 'commands.emu', '-s', 'state', '-n'];
  const child = spawn('ipmi_sim', args, { cwd: folder, stdio: 'ignore' });
  return {
    port,
    read: (name) => readFile(join(folder, name), 'utf8').catch(() => undefined),
    close: async () => {
      await stop(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A port where nothing listens any more. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return port;
}

/** Called as `control.sh get|set|check power|boot|… [value]`. */
function controlScript(folder: string, behaviour: Behaviour): string {
  const setPower = {
    honest: 'echo "$3" > power',
    lying: ':',
    slow:
      behaviour.kind === 'slow' ? `(sleep ${behaviour.seconds}; echo "$3" > power) >&- 2>&- &` : '',
  }[behaviour.kind];
  const setBoot = behaviour.kind === 'lying' ? ':' : 'echo "$3" > boot';
  return `#!/bin/sh
cd '${folder}' || exit 1
case "$1 $2" in
  'get power') echo "power:$(cat power 2>/dev/null || echo 0)" ;;
  'get boot') echo "boot:$(cat boot 2>/dev/null || echo none)" ;;
  'set power') echo "power $3" >> log; ${setPower} ;;
  'set boot') ${setBoot} ;;
  'set shutdown') echo "$3" >> soft ;;
esac
exit 0
`;
}

function lanConfiguration(options: SimulatedBmcOptions, port: number, script: string): string {
  return `name "sim"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 ${port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid ${options.guidHex}
  endlan
${options.serialPort === undefined ? '' : `  sol "tcp:127.0.0.1:${options.serialPort}" 115200\n`}\
  chassis_control "${script}"
  user 2 true "${options.user}" "${options.password}" admin 10 none md2 md5 straight
`;
}

function bytes(hexDigits: string): string {
  return hexDigits
    .trim()
    .split(/\s+/)
    .map((byte) => `0x${byte}`)
    .join(' ');
}

/** Which of its events a sensor has: those of its six thresholds. */
const states = '000111111000000';

/** A temperature of 104 °C, above its upper critical threshold of 100 (IPMI 2.0 §43.1). */
const sensorCommands = `sensor_add 0x20 0 1 0x01 0x01
sensor_set_threshold 0x20 0 1 settable 111111 0x6e 0x64 0x5a 0x00 0x05 0x0a
main_sdr_add 0x20 ${bytes(`
  00 00 51 01 2f 20 00 01 03 01 7f 68 01 01 80 0a 80 0a 3f 3f 00 01 00 00 01 00 00 00 00 00 07
  28 5a 0a ff 00 6e 64 5a 00 05 0a 02 02 00 00 00 c4 54 65 6d 70`)}
sensor_set_event_support 0x20 0 1 enable scanning per-state ${`${states} `.repeat(4).trim()}
sensor_set_value 0x20 0 1 0x68 0`;

/** 0x1291 is the manufacturer of the vendor table's row for ipmi_sim. */
function emulation(options: SimulatedBmcOptions): string {
  return `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
${fruCommand(options.fru)}
sel_enable 0x20 1000 0x0a
${sensorCommands}
mc_enable 0x20
`;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
}
