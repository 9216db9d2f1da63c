/**
 * A machine made of software, from power-on to power-off: its firmware boots from the network as
 * real firmware does, then the real runner works on file disks, started again when it dies, as
 * the ramdisk's init does.
 *
 *     main.ts FOLDER network|disk
 *
 * The process group is the machine: switching it off is a SIGKILL to the group.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { netboot } from '../firmware/index.ts';
import { type MachineDescription, readDescription } from './description.ts';

const runnerRestartDelayMs = 300;
const bootRetryDelayMs = 500;
const longestTimerMs = 2 ** 31 - 1;

const [folder = '', source = 'network'] = process.argv.slice(2);
const machine = readDescription(folder);
powerOn(machine);
if (source === 'disk') {
  print('boots from its own disk');
  // An operating system would run from here on.
  for (;;) await sleep(longestTimerMs);
}
const commandLine = await bootUntilRunner();
// The firmware may have waited long for it.
startKernel(machine);
await runForEver(`${commandLine} ${machine.extraArguments}`);

/** A new boot: /run is empty, the boot id is new. */
function powerOn(description: MachineDescription): void {
  rmSync(join(folder, 'run'), { recursive: true, force: true });
  mkdirSync(join(folder, 'run'), { mode: 0o700 });
  startKernel(description);
}

function startKernel({ mac, uuid, serial, bmcAddress }: MachineDescription): void {
  const interfaces = [{ name: 'eth0', mac }];
  const bmc = bmcAddress === undefined ? {} : { bmcAddress };
  const made = { manufacturer: 'Software', product: 'Machine' };
  const identity = { uuid, serial, ...made, interfaces, ...bmc };
  const boot = { bootId: randomUUID(), startedAtMs: Date.now(), memoryBytes: 1_073_741_824 };
  writeFileSync(join(folder, 'dmi.json'), JSON.stringify({ ...identity, ...boot }));
}

/**
 * The kernel's command line. No disk here has an operating system: firmware that is sent to its
 * disk finds nothing there and begins again with the network, as servers do.
 */
async function bootUntilRunner(): Promise<string> {
  const { form, network, mac, uuid } = machine;
  for (;;) {
    try {
      const end = await netboot({ form, network, identity: { mac, uuid }, print });
      if (end.kind === 'kernel') {
        print(`kernel of ${end.kernelBytes} bytes, ramdisk of ${end.initrdBytes} bytes`);
        return end.commandLine;
      }
      print(end.reason);
    } catch (error) {
      print(error instanceof Error ? error.message : String(error));
    }
    await sleep(bootRetryDelayMs);
  }
}

async function runForEver(words: string): Promise<never> {
  const args = ['--cmdline', words, '--state-dir', join(folder, 'run')];
  const disks = ['--file-disks', join(folder, 'disks'), '--dmi', join(folder, 'dmi.json')];
  for (;;) {
    const child = spawn(process.execPath, [machine.runnerProgram, ...args, ...disks], {
      stdio: 'inherit',
    });
    writeFileSync(join(folder, 'runner.pid'), String(child.pid));
    appendFileSync(join(folder, 'runner.starts'), `${child.pid}\n`);
    await new Promise((resolve) => child.once('exit', resolve));
    await sleep(runnerRestartDelayMs);
  }
}

function print(text: string): void {
  console.error(text);
}
