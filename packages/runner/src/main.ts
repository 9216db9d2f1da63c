/**
 * The runner as a program: in the ramdisk it reads the kernel's command line and uses the machine
 * it runs on; with `--file-disks` and `--dmi` it is a machine made of software.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BootId } from '@rackwright/messages';
import { plainBlobs } from '@rackwright/oci';
import {
  type Clock,
  type CrashPoint,
  invalid,
  type Log,
  type Read,
  valid,
} from '@rackwright/platform';
import {
  makeCrashPoint,
  nodeClock,
  nodeDisk,
  nodeExec,
  nodeHashes,
  nodeLog,
  nodeRandom,
  nodeWebClient,
} from '@rackwright/platform/node';
import { type RunnerConfig, readConfig } from './config.ts';
import { writeImage } from './deploy/write-image.ts';
import { verifyErased } from './erase/verify-erased.ts';
import { linuxCommandRoots } from './linux/command-roots.ts';
import { linuxDevices } from './linux/devices.ts';
import { fileDisks } from './linux/file-disks.ts';
import { fileMachine } from './linux/file-machine.ts';
import { linuxImageTools, softwareImageTools } from './linux/image-tools.ts';
import { linuxMachine } from './linux/linux-machine.ts';
import { folderFiles, linuxFiles } from './linux/machine-files.ts';
import { ownArchitecture } from './linux/own-architecture.ts';
import { replacePredecessor } from './linux/predecessor.ts';
import { linuxPrograms } from './linux/programs.ts';
import { isMissing } from './linux/sys-files.ts';
import { realRoots } from './linux/sys-roots.ts';
import type { BlockDevices } from './machine/block-devices.ts';
import type { MachineFiles } from './machine/files.ts';
import type { Machine } from './machine/machine.ts';
import type { Programs } from './program/program.ts';
import { runRunner } from './runner.ts';
import { grpcDialer } from './session/dialer.ts';
import { stepsOfCleans } from './steps/clean-steps.ts';
import { type CommandParts, runCommand } from './steps/command.ts';
import { runFile } from './steps/file.ts';
import { interpreters, runScript, type ScriptParts } from './steps/script.ts';
import type { Step } from './steps/step.ts';
import { devicesWithout, stepWithout } from './steps/without-checks.ts';
import { runnerVersion } from './version.ts';

const stateFolderMode = 0o700;
const exitInvalid = 64;
/** Oldest Node that the runner was tested on. */
const nodeMajorLeast = 24;
/** The search path for programs of steps. */
const programPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Below the file system that the first process of the ramdisk mounts. */
const stepControlGroup = '/sys/fs/cgroup/rackwright-step';

function checkNode(): void {
  const [nodeMajor] = process.versions.node.split('.').map(Number);
  if ((nodeMajor ?? 0) >= nodeMajorLeast) return;
  throw new Error(`Node ${nodeMajorLeast} or newer is needed, not ${process.versions.node}`);
}

function warnOfLab({ lab }: RunnerConfig, log: Log): void {
  if (lab.verdictSwitchedOff) {
    log.warn({}, 'LABORATORY: THE ERASURE VERDICT IS SWITCHED OFF. NOTHING WILL BE PROVED.');
  }
  if (lab.without.size > 0) {
    const without = [...lab.without].join(', ');
    log.warn({ without }, 'LABORATORY: CHECKS ARE TAKEN AWAY. LIES GET THROUGH.');
  }
}

async function main(): Promise<void> {
  const log = nodeLog('info');
  checkNode();
  const read = readConfig(process.argv.slice(2), readFileSync('/proc/cmdline', 'utf8'));
  if (read.kind === 'invalid') {
    for (const problem of read.problems) log.error({}, problem);
    process.exit(exitInvalid);
  }
  const { config } = read;
  const clock = nodeClock();
  const chosen = chooseMachine(config, clock);
  const { machine } = chosen;
  const devices = devicesWithout(chosen.devices, config.lab.without);
  mkdirSync(config.stateFolder, { recursive: true, mode: stateFolderMode });
  const bootId = await machine.bootId();
  await replacePredecessor({
    disk: nodeDisk(),
    clock,
    log,
    bootId,
    path: join(config.stateFolder, 'process.json'),
    procRoot: '/proc',
    ownPid: process.pid,
    kill: (target) => kill(target, 'SIGKILL'),
  });
  const made = await makeSteps(config, clock, log, bootId);
  const steps = made.map((step) => stepWithout(step, config.lab.without));
  warnOfLab(config, log);
  const over = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => over.abort());
  await runRunner(
    {
      dialer: grpcDialer(
        { host: config.agentHost, port: config.agentPort, fingerprint: config.fingerprint },
        clock,
      ),
      devices,
      machine,
      steps,
      clock,
      random: nodeRandom(),
      disk: nodeDisk(),
      log,
      crashPoint: armCrash(config, bootId, log),
      stateFolder: config.stateFolder,
      bootToken: config.bootToken,
      runnerVersion,
      verdictSwitchedOff: config.lab.verdictSwitchedOff,
    },
    over.signal,
  );
}

function chooseMachine(
  { software }: RunnerConfig,
  clock: Clock,
): { machine: Machine; devices: BlockDevices } {
  if (software !== undefined) {
    const machine = fileMachine(software.dmiFile, clock);
    return { machine, devices: fileDisks(software.diskFolder, clock) };
  }
  const exec = nodeExec(undefined, 'ours');
  return { machine: linuxMachine(exec), devices: linuxDevices(exec) };
}

/** Work that earlier runners of this boot have left is ended here. */
async function makeSteps(
  { software, stateFolder }: RunnerConfig,
  clock: Clock,
  log: Log,
  bootId: BootId,
): Promise<Step[]> {
  const disk = nodeDisk();
  const folder = (name: string): string => {
    mkdirSync(join(stateFolder, name), { recursive: true, mode: stateFolderMode });
    return join(stateFolder, name);
  };
  const markPath = join(stateFolder, 'program.json');
  const programs = await linuxPrograms({
    ...{ disk, clock, log, bootId, markPath, procRoot: '/proc', kill },
    ...(software === undefined ? { controlGroup: stepControlGroup } : {}),
  });
  const scratch = software === undefined ? undefined : folder('scratch');
  const scriptParts: ScriptParts = {
    programs,
    disk,
    privateFolder: folder('step'),
    workingFolder: scratch ?? '/',
    path: scratch === undefined ? programPath : `${scratch}/bin:${programPath}`,
    interpreters:
      scratch === undefined ? new Map() : new Map([[interpreters[1], process.execPath]]),
  };
  const files: MachineFiles =
    scratch === undefined
      ? await linuxFiles(nodeExec(undefined, 'ours'), realRoots, join(stateFolder, 'mount'))
      : folderFiles(scratch);
  const command = runCommand(commandParts(software, programs, join(stateFolder, 'command')));
  const web = nodeWebClient();
  const imageSource =
    software === undefined
      ? linuxImageTools(nodeExec(undefined, 'ours'), web, clock, nodeHashes())
      : softwareImageTools(web, clock, nodeHashes());
  return [
    ...[...stepsOfCleans, verifyErased, writeImage(imageSource)],
    ...[runScript(scriptParts), runFile(files), command],
  ];
}

/** What commands need of this machine, or why they cannot run. */
function commandParts(
  software: RunnerConfig['software'],
  programs: Programs,
  folder: string,
): Read<CommandParts> {
  if (software !== undefined) {
    return invalid(
      'a machine made of software runs no images: they would run on the machine around it',
    );
  }
  const roots = linuxCommandRoots({ folder, path: programPath, procRoot: '/proc', chowns: true });
  const web = nodeWebClient();
  const blobsAt = (endpoint: string) => plainBlobs(web, `http://${endpoint}`);
  return valid({ programs, roots, architecture: ownArchitecture, blobsAt });
}

/** Armed in the first runner of a boot only, so that its successor lives. */
function armCrash({ lab, stateFolder }: RunnerConfig, bootId: BootId, log: Log): CrashPoint {
  if (lab.crashAt === undefined) return () => {};
  const path = join(stateFolder, 'crash-armed');
  if (readIfThere(path) === bootId) return () => {};
  writeFileSync(path, bootId);
  log.warn({ point: lab.crashAt.name }, 'LABORATORY: a crash is armed');
  return makeCrashPoint(lab.crashAt);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function kill(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch {
    // It has ended by itself.
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    nodeLog('error').error({}, 'the runner has ended', error);
    process.exit(1);
  },
);
