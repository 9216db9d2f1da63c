/** The control plane's program; `arguments.ts` has its command line. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorText, type Log, nodeVersionProblem } from '@rackwright/platform';
import { checkConfig, problemLines, wrongConfigCode } from '@rackwright/platform/config';
import {
  type FailedStarts,
  guardedWebClient,
  makeFileCrashPoint,
  nodeClock,
  nodeDisk,
  nodeExec,
  nodeFailedStarts,
  nodeFolderFiles,
  nodeHttp,
  nodeLargeFiles,
  nodeLocalCalls,
  nodeLog,
  nodeProcessFigures,
  nodeRandom,
  nodeSupervision,
  nodeWebClient,
} from '@rackwright/platform/node';
import { parseArguments, type RunOptions, usage } from './arguments.ts';
import { backupCommand, restoreCommand, settleRestoration } from './backup/index.ts';
import { type ControlPlaneConfig, parseConfig } from './config.ts';
import { type ControlPlane, identityFolder, startControlPlane } from './control-plane.ts';
import { openStore } from './open-store.ts';
import type { Platform } from './platform.ts';
import { openKeySource, shownConfig } from './secrets/index.ts';
import { controlPlaneVersion, isBundled, type Software } from './version.ts';

/** Our own servers answer in milliseconds; both together stay below the watchdog's timeout. */
const ownAnswerTimeoutMs = 4_000;
const wrongArgumentsCode = 2;
/** The folder of the built web console: next to the program, or in the sources. */
const consoleFolder = fileURLToPath(
  new URL(isBundled ? 'console' : '../../packages/console/dist', import.meta.url),
);
const consoleBounds = { filesMax: 512, bytesMax: 16 * 1024 * 1024 };
/** Where systemd puts the credentials of a unit. */
function credentialsFolder(): { readonly credentialsFolder?: string } {
  const folder = process.env['CREDENTIALS_DIRECTORY'] ?? '';
  return folder === '' ? {} : { credentialsFolder: folder };
}

/** Reaches the identity provider, whose certificate may be signed by an authority of its own. */
async function issuerClient({ oidc }: ControlPlaneConfig) {
  if (oidc === undefined) return {};
  const { caFile } = oidc;
  const caPem = caFile === undefined ? [] : [await readFile(caFile, 'utf8')];
  return { oidcWebClient: nodeWebClient(caPem) };
}

/** A release's program is one file, and its digest identifies the build. */
async function softwareOf(): Promise<Software> {
  const version = controlPlaneVersion;
  if (!isBundled) return { version };
  const program = await readFile(fileURLToPath(import.meta.url));
  return { version, buildSha256: createHash('sha256').update(program).digest('hex') };
}

/** Prints each problem of the configuration, with its line; undefined when there is one. */
async function readConfig(path: string): Promise<ControlPlaneConfig | undefined> {
  const checked = checkConfig(await readFile(path, 'utf8'), parseConfig);
  if (checked.kind === 'good') return checked.config;
  process.stderr.write(problemLines(path, checked.problems));
  process.exitCode = wrongConfigCode;
  return undefined;
}

interface StartedControlPlane {
  readonly controlPlane: ControlPlane;
  readonly log: Log;
  /** Tells the supervisor that the shutdown has begun. */
  stopping(): Promise<void>;
}

/** This machine, as configured. */
async function nodePlatform(
  config: ControlPlaneConfig,
  options: RunOptions,
  log: Log,
): Promise<Platform> {
  const [disk, clock, random] = [nodeDisk(), nodeClock(), nodeRandom()];
  return {
    clock,
    elapsedMs: () => performance.now(),
    random,
    disk,
    log,
    webClient: guardedWebClient(),
    ...(await issuerClient(config)),
    exec: nodeExec(),
    metricsHttp: nodeHttp(),
    processFigures: nodeProcessFigures(),
    ...(config.traces === undefined ? {} : { tracesWebClient: nodeWebClient() }),
    largeFiles: nodeLargeFiles(),
    localCalls: nodeLocalCalls(),
    ...credentialsFolder(),
    software: await softwareOf(),
    consoleFiles: await nodeFolderFiles(consoleFolder, consoleBounds),
    crashPoint: makeFileCrashPoint(config.crashAt),
    openStore: () =>
      openStore(config.store, {
        disk,
        random,
        clock,
        retention: config.retention,
        restored: options.restored,
        acceptUnprovenDurability: options.acceptUnprovenDurability,
      }),
  };
}

async function start(
  config: ControlPlaneConfig,
  options: RunOptions,
  starts: FailedStarts,
): Promise<StartedControlPlane> {
  const log = nodeLog(config.log.level);
  log.info(
    { configuration: JSON.stringify(shownConfig(config)) },
    'starting with this configuration',
  );
  const platform = await nodePlatform(config, options, log);
  await settleRestoration(config, { disk: platform.disk, files: nodeLargeFiles() });
  await platform.disk.makeFolder(config.dataFolder, 0o700);
  const controlPlane = await startControlPlane(config, platform, {
    acceptNewIdentity: options.acceptNewIdentity,
    newAdminToken: options.newAdminToken,
  });
  log.info(
    {
      operatorsPort: controlPlane.operatorsPort,
      agentsPort: controlPlane.agentsPort,
      metricsPort: controlPlane.metricsPort,
      identity: identityFolder(config),
      store: controlPlane.store.driver,
      survivesPowerLoss: controlPlane.store.survivesPowerLoss,
    },
    'ready',
  );
  const supervision = nodeSupervision(process.env, process.pid, log);
  await starts.forget();
  await supervision.ready();
  const endWatch = supervision.watch(() => controlPlane.problem(ownAnswerTimeoutMs));
  const stopping = (): Promise<void> => {
    endWatch();
    return supervision.stopping();
  };
  return { controlPlane, log, stopping };
}

/** Makes or restores a backup, and reports the result. */
async function runBackup(kind: 'backup' | 'restore', at: string, file: string): Promise<void> {
  const config = parseConfig(await readFile(at, 'utf8'));
  const parts = { disk: nodeDisk(), clock: nodeClock(), random: nodeRandom(), exec: nodeExec() };
  const opening = { ...parts, retention: config.retention, acceptUnprovenDurability: true };
  const files = nodeLargeFiles();
  const path = resolve(file);
  const settings = { ...parts, ...credentialsFolder() };
  const keys =
    config.secrets === undefined ? {} : { keySource: openKeySource(config.secrets.key, settings) };
  const lines =
    kind === 'backup'
      ? await backupCommand(config, path, {
          ...{ ...parts, files, calls: nodeLocalCalls() },
          openStore: () => openStore(config.store, { ...opening, restored: false }),
          ...keys,
        })
      : await restoreCommand(config, path, {
          ...{ ...parts, files, crashPoint: makeFileCrashPoint(config.crashAt) },
          openRestored: (at) =>
            openStore({ driver: 'sqlite', path: at }, { ...opening, restored: true }),
          ...keys,
        });
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function run(): Promise<void> {
  const command = parseArguments(process.argv.slice(2));
  switch (command.kind) {
    case 'help':
      process.stdout.write(usage);
      return;
    case 'wrong':
      process.stderr.write(`rackwright-controlplane: ${command.problem}\n\n${usage}`);
      process.exitCode = wrongArgumentsCode;
      return;
    case 'backup':
    case 'restore':
      return runBackup(command.kind, command.config, command.file);
    case 'checkConfig':
      await readConfig(command.config);
      return;
    case 'run':
      return serve(command.options);
  }
}

async function serve(options: RunOptions): Promise<void> {
  const problem = nodeVersionProblem(process.versions.node);
  if (problem !== undefined) throw new Error(problem);
  const starts = nodeFailedStarts(process.env);
  if (!(await starts.begin())) return;
  const config = await readConfig(options.config);
  // The next start after a fix is not delayed.
  if (config === undefined) return starts.forget();
  const { controlPlane, log, stopping } = await start(config, options, starts);
  const stop = (signal: string) => {
    log.info({ signal }, 'stopping');
    stopping()
      .then(() => controlPlane.close())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({}, 'stopping failed', error);
          process.exit(1);
        },
      );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

try {
  await run();
} catch (error) {
  process.stderr.write(`${errorText(error)}\n`);
  process.exit(1);
}
