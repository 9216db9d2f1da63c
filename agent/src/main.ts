/**
 * The agent's process: reads the command line and the configuration, starts the agent on the real
 * platform, and ends with the signals. Everything else is elsewhere.
 */
import { nodeVersionProblem } from '@rackwright/platform';
import {
  makeCrashPoint,
  nodeClock,
  nodeDisk,
  nodeExec,
  nodeHttp,
  nodeHttpClient,
  nodeLargeFiles,
  nodeLog,
  nodeRandom,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';
import { parseArguments, usage } from './arguments.ts';
import { type AgentConfig, parseConfig } from './config.ts';
import { IdentityFiles, join } from './identity/index.ts';
import { type Platform, startAgent } from './program.ts';

/** Longest join token read from standard input. */
const tokenCharactersMax = 4_096;

async function main(words: readonly string[]): Promise<void> {
  const problem = nodeVersionProblem(process.versions.node);
  if (problem !== undefined) throw new Error(problem);
  const command = parseArguments(words);
  switch (command.kind) {
    case 'help':
      process.stdout.write(
        command.problem === undefined ? usage : `${command.problem}\n\n${usage}`,
      );
      process.exitCode = command.problem === undefined ? 0 : 2;
      return;
    case 'join': {
      const config = await readConfig(command.config);
      const token = command.token === '-' ? await readToken() : command.token;
      await joinRack(config, command.address, token);
      return;
    }
    case 'run':
      await run(await readConfig(command.config));
  }
}

async function readConfig(path: string): Promise<AgentConfig> {
  const bytes = await nodeDisk().read(path);
  if (bytes === undefined) throw new Error(`there is no configuration at ${path}: write one`);
  try {
    return parseConfig(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new Error(`${path}: ${textOf(cause)}`, { cause });
  }
}

async function readToken(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > tokenCharactersMax) throw new Error('standard input is no join token');
  }
  return text.trim();
}

async function joinRack(config: AgentConfig, address: string, token: string): Promise<void> {
  const files = new IdentityFiles(nodeDisk(), config.stateFolder);
  const parts = { clock: nodeClock(), random: nodeRandom() };
  const identity = await join(parts, await files.key(), address, token);
  await files.save(identity);
  process.stdout.write(`joined ${identity.rack}; now start "run"\n`);
}

async function run(config: AgentConfig): Promise<void> {
  const log = nodeLog(config.log.level);
  log.info({ config: JSON.stringify(config) }, 'configuration');
  const platform: Platform = {
    clock: nodeClock(),
    random: nodeRandom(),
    disk: nodeDisk(),
    exec: nodeExec(),
    udp: nodeUdp(),
    http: nodeHttp(),
    httpClient: nodeHttpClient(),
    webClient: nodeWebClient(),
    largeFiles: nodeLargeFiles(),
    log,
    crashPoint: makeCrashPoint(config.crashAt),
  };
  const agent = await startAgent(config, platform);
  const { promise: stopAsked, resolve } = Promise.withResolvers<NodeJS.Signals>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  log.info({ signal: await stopAsked }, 'agent stops');
  await agent.stop();
  // Work in runners goes on without us; timers of ours must not keep the process.
  process.exit(0);
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

try {
  await main(process.argv.slice(2));
} catch (cause) {
  process.stderr.write(`rackwright-agent: ${textOf(cause)}\n`);
  // Ports may be open already: only an exit ends what a failed start has begun.
  process.exit(1);
}
