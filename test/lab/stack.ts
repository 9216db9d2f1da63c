/**
 * What is tested, started into the lab: one control plane and one rack agent, as their own
 * processes, configured as a person would.
 *
 * 1. Each program is the repository's `main.ts`, run by the pinned Node; no part of it is imported.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lab } from './lab.ts';
import { LAB_ADDRESS } from './netns.ts';
import { runProgram, type Started, startProcess, tryProgram, until, within } from './processes.ts';

const ROOT = join(import.meta.dirname, '../..');
const OPERATORS_PORT = 7440;
const AGENTS_PORT = 7441;
const START_WAIT_MS = 30_000;
export const RACK = 'r1';

/** A crash point at which a process is to kill itself. */
export interface CrashAt {
  readonly name: string;
  readonly occurrence: number;
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
  start(crashAt?: CrashAt): Promise<void>;
  process(): Started | undefined;
  stop(): Promise<void>;
}

/** What the agent hands to hosts that boot. */
export interface RunnerFiles {
  readonly vmlinuz: string;
  readonly initrd: string;
  /** Further words for the runner's kernel. */
  readonly kernelArguments: readonly string[];
}

/** Starts control plane and agent, joined, in the lab. */
export async function startStack(lab: Lab, files: RunnerFiles): Promise<Stack> {
  const controlPlane = controlPlaneProgram(lab);
  await controlPlane.start();
  const agent = agentProgram(lab, files);
  const stack: Stack = { controlPlane, agent, ...commandLine(lab) };
  await stack.cli(['rack', 'create', RACK]);
  const token = await stack.cli(['rack', 'join-token', RACK]);
  await joinAgent(lab, token.trim());
  await agent.start();
  return stack;
}

function commandLine(lab: Lab): Pick<Stack, 'tryCli' | 'cli' | 'program' | 'startCli'> {
  const identity = join(lab.folder, 'control-plane/identity');
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
      const [file = '', ...words] = [...program, ...args];
      const logFile = join(lab.folder, `${name}.log`);
      writeFileSync(logFile, '');
      return startProcess(lab.undo, { name, file, args: words, logFile, namespace, environment });
    },
  };
}

function controlPlaneProgram(lab: Lab): Program {
  return program(lab, 'control-plane', join(ROOT, 'controlplane/src/main.ts'), ['--config'], {
    config: {
      dataFolder: join(lab.folder, 'control-plane'),
      operators: { address: LAB_ADDRESS.agent, port: OPERATORS_PORT },
      agents: { address: LAB_ADDRESS.agent, port: AGENTS_PORT },
      names: [LAB_ADDRESS.agent],
    },
    readyText: '"ready"',
  });
}

function agentProgram(lab: Lab, files: RunnerFiles): Program {
  return program(lab, 'agent', join(ROOT, 'agent/src/main.ts'), ['run', '--config'], {
    config: {
      stateFolder: join(lab.folder, 'agent'),
      serverAddress: LAB_ADDRESS.agent,
      dhcp: { mode: 'proxy' },
      files: [
        { name: 'vmlinuz', path: files.vmlinuz },
        { name: 'initrd', path: files.initrd },
      ],
      runner: {
        kernelArguments: ['console=ttyS0', 'quiet', ...files.kernelArguments],
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

function program(
  lab: Lab,
  name: string,
  file: string,
  words: readonly string[],
  options: { readonly config: object; readonly readyText: string },
): Program {
  const configFile = join(lab.folder, `${name}.json`);
  const logFile = join(lab.folder, `${name}.log`);
  const writeConfig = (crashAt?: CrashAt): void =>
    writeFileSync(configFile, JSON.stringify({ ...options.config, ...(crashAt && { crashAt }) }));
  writeFileSync(logFile, '');
  writeConfig();
  let current: Started | undefined;
  return {
    process: () => current,
    stop: async () => await current?.stop(),
    start: async (crashAt) => {
      writeConfig(crashAt);
      const before = readFileSync(logFile, 'utf8').length;
      const started = startProcess(lab.undo, {
        name,
        file: process.execPath,
        args: [file, ...words, configFile],
        logFile,
        namespace: lab.network.namespace,
      });
      current = started;
      const isReady = (): boolean =>
        !started.isRunning() ||
        readFileSync(logFile, 'utf8').slice(before).includes(options.readyText);
      await until(`the start of the ${name}`, START_WAIT_MS, isReady, logFile);
      if (!started.isRunning() && crashAt === undefined) {
        throw new Error(
          `the ${name} ended at its start; its log: ${readFileSync(logFile, 'utf8')}`,
        );
      }
    },
  };
}
