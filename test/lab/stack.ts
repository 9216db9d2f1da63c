/**
 * What is tested, started into the lab: one control plane and one rack agent, as their own
 * processes, configured as a person would.
 *
 * 1. Each program is the repository's `main.ts`, run by the pinned Node; no part of it is imported.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Lab } from './lab.ts';
import { LAB_ADDRESS } from './netns.ts';
import { runProgram, type Started, startProcess, until } from './processes.ts';

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

/** The programs under test. */
export interface Stack {
  readonly controlPlane: Program;
  readonly agent: Program;
  /** One call of the operators' API; answers the responses, already parsed. */
  call(method: string, request: unknown): Promise<readonly unknown[]>;
  /** The command that `call` runs, for a stream that goes on. */
  callCommand(method: string): readonly string[];
  /** Where `trust.pem` lies. */
  readonly trustFile: string;
}

/** A program that can be ended and started again, with its state kept. */
export interface Program {
  start(crashAt?: CrashAt): Promise<void>;
  process(): Started | undefined;
  stop(): Promise<void>;
}

/** Starts control plane and agent, joined, in the lab. */
export async function startStack(
  lab: Lab,
  options: {
    readonly vmlinuz: string;
    readonly initrd: string;
    readonly kernelArguments?: readonly string[];
  },
): Promise<Stack> {
  const controlPlane = controlPlaneProgram(lab);
  await controlPlane.start();
  const identity = join(lab.folder, 'control-plane/identity');
  const callCommand = (method: string): readonly string[] => [
    process.execPath,
    fileURLToPath(import.meta.resolve('./operator.ts')),
    `${LAB_ADDRESS.agent}:${OPERATORS_PORT}`,
    join(identity, 'ca.pem'),
    join(identity, 'admin.token'),
    method,
  ];
  const call = async (method: string, request: unknown): Promise<readonly unknown[]> => {
    const [file = '', ...args] = callCommand(method);
    const input = JSON.stringify(request);
    const answer = await runProgram(file, args, { namespace: lab.network.namespace, input });
    return answer
      .split('\n')
      .filter(Boolean)
      .map((line): unknown => JSON.parse(line));
  };
  await call('RackService.CreateRack', { rackId: RACK, rack: {} });
  const [token] = await call('RackService.CreateJoinToken', { rack: `racks/${RACK}` });
  const agent = agentProgram(lab, options);
  await joinAgent(lab, (token as { token: string }).token);
  await agent.start();
  return { controlPlane, agent, call, callCommand, trustFile: join(identity, 'trust.pem') };
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

function agentProgram(
  lab: Lab,
  options: {
    readonly vmlinuz: string;
    readonly initrd: string;
    readonly kernelArguments?: readonly string[];
  },
): Program {
  return program(lab, 'agent', join(ROOT, 'agent/src/main.ts'), ['run', '--config'], {
    config: {
      stateFolder: join(lab.folder, 'agent'),
      serverAddress: LAB_ADDRESS.agent,
      dhcp: { mode: 'proxy' },
      files: [
        { name: 'vmlinuz', path: options.vmlinuz },
        { name: 'initrd', path: options.initrd },
      ],
      runner: {
        kernelArguments: ['console=ttyS0', 'quiet', ...(options.kernelArguments ?? [])],
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
