/**
 * What is tested, started into the lab: one control plane and one rack agent, as their own
 * processes, configured as a person would.
 *
 * 1. Each program is the repository's `main.ts`, run by the pinned Node; no part of it is imported.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ArmedCrash } from '@rackwright/platform/node';
import type { RamdiskArchitecture } from '@rackwright/runner/ramdisk';
import { agentBootConfig, architectureOf, isSecure } from './firmware.ts';
import type { Lab } from './lab.ts';
import { LAB_ADDRESS } from './netns.ts';
import { runProgram, type Started, startProcess, tryProgram, until, within } from './processes.ts';

const ROOT = join(import.meta.dirname, '../..');
export const OPERATORS_PORT = 7440;
const AGENTS_PORT = 7441;
const START_WAIT_MS = 120_000;
/** Long enough to look at a run that timed out, short enough to see it go. */
const SWEEP = { sweepIntervalMs: 5_000, timedOutShownMs: 30_000 };
export const RACK = 'r1';
/**
 * Words for the runner's kernel. It panics when the timer of an emulated machine that others starve
 * stands still for a moment, unless it does not look; the rest is time that tests need not spend.
 */
export function kernelArguments(architecture: RamdiskArchitecture): string[] {
  const port = architecture === 'arm64' ? 'ttyAMA0' : 'ttyS0';
  return [
    ...[`console=${port}`, 'quiet'],
    ...['no_timer_check', 'mitigations=off', 'cryptomgr.notests'],
  ];
}

/** Which process dies. */
export type Victim = 'control-plane' | 'agent' | 'runner';

/** A crash point of control plane or agent, and who dies when it is passed. */
export interface Crash {
  readonly name: string;
  /** 1 for the first time that it is passed. */
  readonly occurrence: number;
  readonly victim: Victim;
}

/** What a run of the command-line program gave. */
export interface CliResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The programs under test. */
export interface Stack {
  readonly controlPlane: Program;
  readonly agent: Program;
  /** Runs `rackwright ARGS` in the lab, whatever it ends with. */
  tryCli(args: readonly string[], input?: string): Promise<CliResult>;
  /** Runs `rackwright ARGS` and answers what it printed; throws when it fails. */
  cli(args: readonly string[], input?: string): Promise<string>;
  /** The command that `rackwright` stands for. */
  readonly program: readonly string[];
  /** Starts `rackwright ARGS` and lets it run; its output is in the log file. */
  startCli(name: string, args: readonly string[]): Started;
}

/** A program that can be ended and started again, with its state kept. */
export interface Program {
  start(): Promise<void>;
  process(): Started | undefined;
  /** How often it was started. */
  starts(): number;
  /** Starts it again when it has died; does not wait until it is ready. */
  reviveIfDead(): void;
}

/** What the agent hands to hosts that boot. */
export interface RunnerFiles {
  readonly vmlinuz: string;
  readonly initrd: string;
  /** Further words for the runner's kernel. */
  readonly kernelArguments: readonly string[];
}

/** Starts control plane and agent, joined, in the lab. */
export async function startStack(lab: Lab, files: RunnerFiles, crash?: Crash): Promise<Stack> {
  const controlPlane = controlPlaneProgram(lab, crash);
  await controlPlane.start();
  const agent = agentProgram(lab, files, crash);
  const identity = join(lab.folder, 'control-plane/identity');
  const stack: Stack = { controlPlane, agent, ...commandLine(lab, identity) };
  await stack.cli(['rack', 'create', RACK]);
  const token = await stack.cli(['rack', 'join-token', RACK]);
  await joinAgent(lab, token.trim());
  await agent.start();
  return stack;
}

/** The operators' command, for the control plane whose identity is in that folder. */
export function commandLine(
  lab: Lab,
  identity: string,
): Pick<Stack, 'tryCli' | 'cli' | 'program' | 'startCli'> {
  const environment = {
    RACKWRIGHT_SERVER: `${LAB_ADDRESS.agent}:${OPERATORS_PORT}`,
    RACKWRIGHT_CA_FILE: join(identity, 'ca.pem'),
    RACKWRIGHT_TOKEN_FILE: join(identity, 'admin.token'),
  };
  const program = [process.execPath, join(ROOT, 'packages/cli/src/main.ts')];
  const { namespace } = lab.network;
  const tryCli: Stack['tryCli'] = async (args, input = '') =>
    await tryProgram(within(namespace, [...program, ...args]), { environment, input });
  return {
    tryCli,
    program,
    cli: async (args, input) => {
      const { code, out, err } = await tryCli(args, input);
      if (code !== 0) throw new Error(`rackwright ${args.join(' ')}: ${code}: ${err.trim()}`);
      return out;
    },
    startCli: (name, args) => {
      const [file = '', ...programArgs] = [...program, ...args];
      const logFile = join(lab.folder, `${name}.log`);
      writeFileSync(logFile, '');
      return startProcess(lab.undo, {
        name,
        file,
        args: programArgs,
        logFile,
        namespace,
        environment,
      });
    },
  };
}

function controlPlaneProgram(lab: Lab, crash: Crash | undefined): Program {
  return program(lab, {
    name: 'control-plane',
    args: [join(ROOT, 'controlplane/src/main.ts'), '--config'],
    armed: armedCrash(lab, 'control-plane', 'cp.', crash),
    config: {
      dataFolder: join(lab.folder, 'control-plane'),
      metrics: { port: 0 },
      operators: { address: LAB_ADDRESS.agent, port: OPERATORS_PORT },
      agents: { address: LAB_ADDRESS.agent, port: AGENTS_PORT },
      names: [LAB_ADDRESS.agent],
      workflows: SWEEP,
    },
    readyText: '"ready"',
  });
}

function agentProgram(lab: Lab, files: RunnerFiles, crash: Crash | undefined): Program {
  const architecture = architectureOf(lab.boot.firmware);
  return program(lab, {
    name: 'agent',
    args: [join(ROOT, 'agent/src/main.ts'), 'run', '--config'],
    armed: armedCrash(lab, 'agent', 'agent.', crash),
    config: {
      stateFolder: join(lab.folder, 'agent'),
      metrics: { port: 0 },
      serverAddress: LAB_ADDRESS.agent,
      ...agentBootConfig(lab.boot),
      files: [
        { name: 'vmlinuz', path: files.vmlinuz },
        { name: 'initrd', path: files.initrd },
      ],
      runner: {
        architecture,
        kernelArguments: [
          ...kernelArguments(architecture),
          // Behind "quiet": it is to say that it is locked down.
          ...(isSecure(lab.boot.firmware) ? ['loglevel=6'] : []),
          ...files.kernelArguments,
        ],
        address: LAB_ADDRESS.agent,
      },
    },
    readyText: 'agent is up',
  });
}

async function joinAgent(lab: Lab, token: string): Promise<void> {
  const args = ['join', `${LAB_ADDRESS.agent}:${OPERATORS_PORT}`, '-'];
  await runProgram(
    process.execPath,
    [join(ROOT, 'agent/src/main.ts'), ...args, '--config', join(lab.folder, 'agent.json')],
    { namespace: lab.network.namespace, input: token },
  );
}

/** What arms a program's crash point, if the crash is at one of its own. */
function armedCrash(
  lab: Lab,
  name: Victim,
  prefix: string,
  crash: Crash | undefined,
): ArmedCrash | undefined {
  if (crash === undefined || !crash.name.startsWith(prefix)) return undefined;
  const pidFile = crash.victim === name ? {} : { pidFile: join(lab.folder, `${crash.victim}.pid`) };
  return { name: crash.name, occurrence: crash.occurrence, ...pidFile };
}

/** A program of ours; `armed` holds until its crash. */
function program(
  lab: Lab,
  options: {
    readonly name: string;
    readonly args: readonly string[];
    readonly config: object;
    readonly armed: ArmedCrash | undefined;
    readonly readyText: string;
  },
): Program {
  const { name, args: programArgs, config, readyText } = options;
  const configFile = join(lab.folder, `${name}.json`);
  const logFile = join(lab.folder, `${name}.log`);
  const lives: Started[] = [];
  const launch = (): Started => {
    const [file, args] = [process.execPath, [...programArgs, configFile]];
    const { namespace } = lab.network;
    const started = startProcess(lab.undo, { name, file, args, logFile, namespace });
    writeFileSync(join(lab.folder, `${name}.pid`), `${started.pid}\n`);
    lives.push(started);
    return started;
  };
  writeFileSync(logFile, '');
  const crashAt = join(lab.folder, `${name}.armed`);
  if (options.armed !== undefined) writeFileSync(crashAt, JSON.stringify(options.armed));
  // Joining reads it before the first start.
  writeFileSync(configFile, JSON.stringify({ ...config, crashAt }));
  return {
    process: () => lives.at(-1),
    starts: () => lives.length,
    reviveIfDead: () => {
      if (lives.at(-1)?.isRunning() === false) launch();
    },
    start: async () => {
      const before = readFileSync(logFile, 'utf8').length;
      const started = launch();
      const said = (): string => readFileSync(logFile, 'utf8').slice(before);
      const isReady = (): boolean => !started.isRunning() || said().includes(readyText);
      await until(`the start of the ${name}`, START_WAIT_MS, isReady, logFile);
      if (!started.isRunning()) throw new Error(`the ${name} ended at its start: ${said()}`);
    },
  };
}
