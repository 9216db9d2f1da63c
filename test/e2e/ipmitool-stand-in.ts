/**
 * Stands in for `ipmitool` where none is installed: answers the few raw commands that the driver
 * sends (`packages/bmc/src/ipmi`), and switches a software machine on and off. The driver itself is
 * tested against the real tool and a real BMC simulator elsewhere.
 *
 *     ipmitool-stand-in.ts FOLDER … -H ADDRESS … COMMAND…
 *
 * FOLDER/ADDRESS holds the machine behind that BMC: `bmc.json`, and `machine.pid` while it is on.
 */
import { spawn } from 'node:child_process';
import { openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface BmcFile {
  /** 32 hex digits. */
  readonly guid: string;
  readonly serial: string;
  readonly password: string;
}

const [folder = '', ...words] = process.argv.slice(2);
const at = (option: string) => words[words.indexOf(option) + 1] ?? '';
const machineFolder = join(folder, at('-H'));
const bmc = JSON.parse(readFileSync(join(machineFolder, 'bmc.json'), 'utf8')) as BmcFile;
const pidFile = join(machineFolder, 'machine.pid');
const bootFile = join(machineFolder, 'boot-flags');

if (readFileSync('/dev/stdin', 'utf8').trim() !== bmc.password) {
  process.stderr.write('> RAKP 2 HMAC is invalid\n');
  process.exit(1);
}
process.stdout.write(`${answer(words.slice(words.indexOf('/dev/stdin') + 1))}\n`);

function answer(command: readonly string[]): string {
  const bytes = command.slice(1).map(Number);
  const [netFunction, code, argument] = bytes;
  if (command[0] === 'fru')
    return ` Product Manufacturer  : Software\n Product Serial : ${bmc.serial}`;
  if (netFunction === 6 && code === 1) return ' 00 03 09 08 02 9f 91 12 00 02 0f 00 00 00 00';
  if (netFunction === 6 && code === 0x37) return hex(Buffer.from(bmc.guid, 'hex'));
  if (netFunction === 0 && code === 1)
    return machinePid() === undefined ? ' 00 00 00' : ' 01 00 00';
  if (netFunction === 0 && code === 2) return switchPower(argument === 1);
  if (netFunction === 0 && code === 8) return setBootFlags(bytes.slice(3, 5));
  if (netFunction === 0 && code === 9) return ` 01 05${hex(readBootFlags())} 00 00 00`;
  process.stderr.write('Unable to send RAW command (rsp=0xc1): Invalid command\n');
  process.exit(1);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => ` ${byte.toString(16).padStart(2, '0')}`).join('');
}

function setBootFlags(flags: readonly number[]): string {
  writeFileSync(bootFile, Buffer.from(flags).toString('hex'));
  return '';
}

function readBootFlags(): Uint8Array {
  try {
    return Buffer.from(readFileSync(bootFile, 'utf8'), 'hex');
  } catch {
    return Uint8Array.of(0, 0);
  }
}

function machinePid(): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'));
    process.kill(pid, 0);
    return pid;
  } catch {
    return undefined;
  }
}

function switchPower(on: boolean): string {
  const pid = machinePid();
  if (on && pid === undefined) {
    const log = openSync(join(machineFolder, 'machine.log'), 'a');
    const program = join(import.meta.dirname, 'software-machine.ts');
    const child = spawn(process.execPath, [program, machineFolder], {
      detached: true,
      stdio: ['ignore', log, log],
    });
    writeFileSync(pidFile, String(child.pid));
    child.unref();
  }
  if (!on && pid !== undefined) {
    process.kill(-pid, 'SIGKILL');
    rmSync(pidFile, { force: true });
  }
  return '';
}
