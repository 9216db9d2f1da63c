/**
 * A machine made of software, from power-on to power-off: its firmware boots from the network as
 * real firmware does, then the real runner works on file disks, started again when it dies, as
 * the ramdisk's init does. Or it boots from its disk, and a system that is there runs.
 *
 *     main.ts FOLDER network|disk
 *
 * The process group is the machine: switching it off is a SIGKILL to the group. Programs of steps
 * have groups of their own, and end with their runner.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '@rackwright/platform';
import { switchOffFileDisks } from '@rackwright/runner/file-disks';
import { netboot } from '../firmware/index.ts';
import { type TakeAway, takeAwayAsked, writeCommands } from './commands.ts';
import { type MachineDescription, readDescription } from './description.ts';
import { startFromDisk } from './first-boot.ts';

const runnerRestartDelayMs = 300;
const bootRetryDelayMs = 500;
/** The interval of a machine's checks for a script's request to take its runner away. */
const takeAwayPollMs = 100;
/** A script may still write while its machine is reset. */
const removeRetriesMax = 20;
const removeRetryDelayMs = 50;
const timerMsMax = 2 ** 31 - 1;

const [folder = '', source = 'network'] = process.argv.slice(2);
const machine = readDescription(folder);
// The power was off: what its disks had only confirmed is gone. A reboot takes nothing.
switchOffFileDisks(join(folder, 'disks'), Date.now());
powerOn(machine);
if (source === 'disk') {
  print('boots from its own disk');
  await startFromDisk(folder, print);
  for (;;) await sleep(timerMsMax);
}
for (;;) {
  const commandLine = await bootUntilRunner();
  // The firmware may have waited long for it.
  startKernel(machine);
  const how = await runUntilTakenAway(`${commandLine} ${machine.extraArguments}`);
  print(`${how} by a script`);
  // Another kernel would run from here on, or nothing would.
  while (how !== 'reboot') await sleep(timerMsMax);
  powerOn(machine);
}

/** A new boot: /run is empty, the boot id is new. */
function powerOn(description: MachineDescription): void {
  const patience = { maxRetries: removeRetriesMax, retryDelay: removeRetryDelayMs };
  rmSync(join(folder, 'run'), { recursive: true, force: true, ...patience });
  mkdirSync(join(folder, 'run'), { mode: 0o700 });
  writeCommands(folder);
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
 * The kernel's command line. Firmware with an order to boot from the network keeps trying that,
 * also when a script sends it to its disk.
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
      print(errorText(error));
    }
    await sleep(bootRetryDelayMs);
  }
}

async function runUntilTakenAway(kernelArgs: string): Promise<TakeAway> {
  const args = ['--cmdline', kernelArgs, '--state-dir', join(folder, 'run')];
  const disks = ['--file-disks', join(folder, 'disks'), '--dmi', join(folder, 'dmi.json')];
  for (;;) {
    const child = spawn(process.execPath, [machine.runnerProgram, ...args, ...disks], {
      stdio: 'inherit',
    });
    writeFileSync(join(folder, 'runner.pid'), String(child.pid));
    appendFileSync(join(folder, 'runner.starts'), `${child.pid}\n`);
    const how = await endOf(child);
    if (how !== undefined) return how;
    await sleep(runnerRestartDelayMs);
  }
}

/** Waits for the runner's end; a script that takes the machine away ends it at once. */
async function endOf(child: ChildProcess): Promise<TakeAway | undefined> {
  let isOver = false;
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isOver = true;
      resolve();
    });
  });
  while (!isOver) {
    const how = takeAwayAsked(folder);
    if (how !== undefined) {
      child.kill('SIGKILL');
      await exited;
      return how;
    }
    await Promise.race([exited, sleep(takeAwayPollMs)]);
  }
  return takeAwayAsked(folder);
}

function print(text: string): void {
  console.error(text);
}
