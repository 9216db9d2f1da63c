/**
 * A machine made of software, from power-on to power-off: asks the agent for its boot script as
 * iPXE would, fetches what the script names, and runs the real runner on file disks, starting it
 * again when it dies, as the ramdisk's init does.
 *
 *     software-machine.ts FOLDER
 *
 * FOLDER holds `machine.json` and `disks/`. The whole process group is the machine: switching it
 * off is a SIGKILL to the group.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface MachineFile {
  readonly mac: string;
  /** Of the agent's boot server. */
  readonly bootUrl: string;
  readonly uuid: string;
  readonly serial: string;
  /** Words added to the kernel's command line. */
  readonly extraArguments: string;
}

const restartDelayMs = 300;
const [folder = ''] = process.argv.slice(2);
const machine = JSON.parse(readFileSync(join(folder, 'machine.json'), 'utf8')) as MachineFile;
const runnerProgram = join(import.meta.dirname, '../../packages/runner/src/main.ts');

powerOn();
const commandLine = await netboot();
if (commandLine === undefined) await sleep(2 ** 31 - 1);
else await runForEver(`${commandLine} ${machine.extraArguments}`);

/** A new boot: /run is empty, the boot id is new. */
function powerOn(): void {
  rmSync(join(folder, 'run'), { recursive: true, force: true });
  mkdirSync(join(folder, 'run'), { mode: 0o700 });
  const interfaces = [{ name: 'eth0', mac: machine.mac }];
  const { uuid, serial } = machine;
  const identity = { uuid, serial, manufacturer: 'Software', product: 'Machine', interfaces };
  const boot = { bootId: randomUUID(), startedAtMs: Date.now(), memoryBytes: 1_073_741_824 };
  writeFileSync(join(folder, 'dmi.json'), JSON.stringify({ ...identity, ...boot }));
}

/** The kernel's command line, or undefined when the script sends the machine to its own disk. */
async function netboot(): Promise<string | undefined> {
  const script = await fetchText(`${machine.bootUrl}/boot/${machine.mac}/script.ipxe`);
  const kernel = /^kernel (\S+) (.*?) && /m.exec(script);
  const initrd = /initrd --name initrd (\S+)/.exec(script);
  if (kernel === null || initrd === null) return undefined;
  await fetchText(kernel[1] ?? '');
  await fetchText(initrd[1] ?? '');
  return kernel[2];
}

async function fetchText(url: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await fetch(url);
      if (response.ok) return await response.text();
      console.error(`${url}: ${response.status}`);
    } catch (error) {
      console.error(`${url}: ${String(error)}`);
    }
    if (attempt === 100) throw new Error(`${url} cannot be fetched`);
    await sleep(200);
  }
}

async function runForEver(words: string): Promise<never> {
  const args = ['--cmdline', words, '--state-dir', join(folder, 'run')];
  const disks = ['--file-disks', join(folder, 'disks'), '--dmi', join(folder, 'dmi.json')];
  for (;;) {
    const child = spawn(process.execPath, [runnerProgram, ...args, ...disks], { stdio: 'inherit' });
    writeFileSync(join(folder, 'runner.pid'), String(child.pid));
    appendFileSync(join(folder, 'runner.starts'), `${child.pid}\n`);
    await new Promise((resolve) => child.once('exit', resolve));
    await sleep(restartDelayMs);
  }
}
