/**
 * The agent's process: reads the command line and the configuration, starts the agent on the real
 * platform, and ends with the signals. Everything else is elsewhere.
 */
import { ConfigError, errorText, nodeVersionProblem } from '@rackwright/platform';
import { checkConfig, problemLines, wrongConfigCode } from '@rackwright/platform/config';
import {
  type FailedStarts,
  guardedWebClient,
  inheritedDescriptors,
  keepCompiled,
  loadHttp,
  makeFileCrashPoint,
  nodeClock,
  nodeDisk,
  nodeExec,
  nodeFailedStarts,
  nodeHashes,
  nodeHttp,
  nodeHttpClient,
  nodeLargeFiles,
  nodeLog,
  nodeNames,
  nodeOwnAddresses,
  nodeProcessFigures,
  nodeRandom,
  nodeReadTree,
  nodeSupervision,
  nodeUdp,
  nodeWebClient,
  openInherited,
} from '@rackwright/platform/node';
import { parseArguments, usage } from './arguments.ts';
import { type AgentConfig, parseConfig, parseWholeConfig } from './config.ts';
import { clockWarning, IdentityFiles, isKeyOver, join } from './identity/index.ts';
import { readInterfaces, watchInterfaces } from './interface-watch.ts';
import { closedText, divideInterfaces, strayAddresses } from './interfaces.ts';
import { kernelProblem } from './kernel-file.ts';
import { nginxSite } from './nginx-site.ts';
import { type AgentPlatform, startAgent } from './program.ts';
import { withOverlay } from './ramdisk-overlay.ts';

/** Longest join token read from standard input. */
const tokenCharactersMax = 4_096;
/** Our own servers answer in milliseconds; both together stay below the watchdog's question. */
const ownAnswerTimeoutMs = 4_000;

async function main(args: readonly string[]): Promise<void> {
  const problem = nodeVersionProblem(process.versions.node);
  if (problem !== undefined) throw new Error(problem);
  const command = parseArguments(args);
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
      await joinRack(config, { ...command, token });
      return;
    }
    case 'checkConfig':
      await wholeConfig(command.config);
      return;
    case 'nginx': {
      const config = await wholeConfig(command.config);
      if (config !== undefined) process.stdout.write(nginxSite(config));
      return;
    }
    case 'run': {
      const starts = nodeFailedStarts(process.env);
      if (!(await starts.begin())) return;
      const config = await wholeConfig(command.config);
      if (config !== undefined) await run(config, starts);
      else await starts.forget();
    }
  }
}

async function readText(path: string): Promise<string> {
  const bytes = await nodeDisk().read(path);
  if (bytes === undefined) throw new Error(`there is no configuration at ${path}: write one`);
  return new TextDecoder().decode(bytes);
}

/** Says each problem of the configuration, with its line. */
async function wholeConfig(path: string): Promise<AgentConfig | undefined> {
  const checked = checkConfig(await readText(path), parseWholeConfig);
  if (checked.kind === 'good') return checked.config;
  process.stderr.write(problemLines(path, checked.problems));
  process.exitCode = wrongConfigCode;
  return undefined;
}

async function readConfig(path: string): Promise<AgentConfig> {
  const text = await readText(path);
  try {
    return parseConfig(text);
  } catch (cause) {
    throw new Error(`${path}: ${errorText(cause)}`, { cause });
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

interface JoinCommand {
  readonly address: string;
  readonly token: string;
  readonly newKey: boolean;
}

async function joinRack(
  config: AgentConfig,
  { address, token, newKey }: JoinCommand,
): Promise<void> {
  const files = new IdentityFiles(nodeDisk(), config.stateFolder);
  const parts = { clock: nodeClock(), random: nodeRandom() };
  const key = newKey ? await files.newKey() : await files.key();
  const identity = await join(parts, key, address, token).catch(async (cause: unknown) => {
    // A new key that has ended as well is not tried again.
    if (newKey && isKeyOver(cause)) await files.dropNewKey();
    throw cause;
  });
  await files.save(identity);
  if (newKey) await files.adoptNewKey(key);
  const { issuedAtMs, clockOffsetMs = 0 } = identity;
  const warning = clockWarning(issuedAtMs, issuedAtMs + clockOffsetMs);
  if (warning !== undefined) process.stderr.write(`rackwright-agent: ${warning}\n`);
  process.stdout.write(`joined ${identity.rack}; now start "run"\n`);
}

async function run(config: AgentConfig, starts: FailedStarts): Promise<void> {
  const log = nodeLog(config.log.level);
  log.info({ config: JSON.stringify(config) }, 'configuration');
  const supervision = nodeSupervision(process.env, process.pid, log);
  const inherited = await openInherited(inheritedDescriptors(process.env, process.pid));
  const [clock, disk] = [nodeClock(), nodeDisk()];
  const names = [...new Set([...config.interfaces.map(({ name }) => name), ...inherited.names])];
  const atStart = await readInterfaces(disk);
  const divided = divideInterfaces(config, inherited, (name) => atStart.has(name));
  if (divided.kind === 'bad') throw new Error(divided.problem);
  const division = divided.value;
  for (const name of division.awaited) {
    log.warn({ interface: name }, 'a boot interface is not there yet: served once it has come');
  }
  for (const name of division.closed) log.error({ interface: name }, closedText(name));
  for (const text of strayAddresses(division.served, nodeOwnAddresses())) log.warn({}, text);
  const platform: AgentPlatform = {
    clock,
    random: nodeRandom(),
    disk,
    exec: nodeExec(),
    names: nodeNames(),
    udp: nodeUdp(inherited),
    http: nodeHttp(),
    httpClient: nodeHttpClient(),
    webClient: guardedWebClient(),
    largeFiles: nodeLargeFiles(),
    hashes: nodeHashes(),
    log,
    crashPoint: makeFileCrashPoint(config.crashAt),
    ownAddresses: nodeOwnAddresses,
    processFigures: nodeProcessFigures(),
    ...(config.traces === undefined ? {} : { tracesWebClient: nodeWebClient() }),
  };
  const wrongKernel = await kernelProblem(config, nodeLargeFiles());
  if (wrongKernel !== undefined) throw new ConfigError(wrongKernel);
  const parts = { disk, log, readTree: nodeReadTree };
  const overlaid = await withOverlay(config, parts);
  const agent = await startAgent({ ...overlaid, served: division.served }, platform);
  const unused = inherited.closeRest();
  if (unused.length > 0) {
    log.warn({ ports: unused.join(' ') }, 'the configuration asks for no such inherited sockets');
  }
  await starts.forget();
  await supervision.ready();
  await loadHttp();
  keepCompiled();
  const endWatch = supervision.watch(() => agent.problem(ownAnswerTimeoutMs));
  const { promise: stopAsked, resolve } = Promise.withResolvers<string>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  // The service manager that handed the sockets over starts the agent again, with sockets of the
  // present interfaces.
  const onCome = (name: string): void => resolve(`interface ${name} has come`);
  const endInterfaceWatch = watchInterfaces({ clock, disk, log, names, atStart, onCome });
  log.info({ reason: await stopAsked }, 'agent stops');
  endInterfaceWatch();
  endWatch();
  await supervision.stopping();
  await agent.stop();
  // Work in runners goes on without us; timers of ours must not keep the process.
  process.exit(0);
}

try {
  await main(process.argv.slice(2));
} catch (cause) {
  process.stderr.write(`rackwright-agent: ${errorText(cause)}\n`);
  // Ports may be open already: only an exit undoes a failed start.
  process.exit(1);
}
