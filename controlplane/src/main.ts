/**
 * The control plane's program.
 *
 *     rackwright-controlplane --config FILE [--restored] [--accept-new-identity]
 *                             [--accept-unproven-durability]
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type Log, nodeVersionProblem } from '@rackwright/platform';
import {
  makeCrashPoint,
  nodeClock,
  nodeDisk,
  nodeExec,
  nodeLog,
  nodeRandom,
  nodeWebClient,
} from '@rackwright/platform/node';
import { type ControlPlaneConfig, parseConfig } from './config.ts';
import { type ControlPlane, identityFolder, startControlPlane } from './control-plane.ts';
import { openStore } from './open-store.ts';

const usage =
  'usage: rackwright-controlplane --config FILE [--restored] [--accept-new-identity] ' +
  '[--accept-unproven-durability]';

function readArguments(argv: string[]) {
  const { values } = parseArgs({
    args: argv,
    options: {
      config: { type: 'string' },
      restored: { type: 'boolean', default: false },
      'accept-new-identity': { type: 'boolean', default: false },
      'accept-unproven-durability': { type: 'boolean', default: false },
    },
  });
  if (values.config === undefined) throw new Error(usage);
  return { ...values, config: values.config };
}

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

async function start(argv: string[]): Promise<{ controlPlane: ControlPlane; log: Log }> {
  const problem = nodeVersionProblem(process.versions.node);
  if (problem !== undefined) throw new Error(problem);
  const options = readArguments(argv);
  const config: ControlPlaneConfig = parseConfig(await readFile(options.config, 'utf8'));
  const log = nodeLog(config.log.level);
  log.info({ configuration: JSON.stringify(config) }, 'starting with this configuration');
  const disk = nodeDisk();
  const clock = nodeClock();
  const random = nodeRandom();
  await disk.makeFolder(config.dataFolder, 0o700);
  const controlPlane = await startControlPlane(
    config,
    {
      clock,
      random,
      disk,
      log,
      webClient: nodeWebClient(),
      ...(await issuerClient(config)),
      exec: nodeExec(),
      ...credentialsFolder(),
      crashPoint: makeCrashPoint(config.crashAt),
      openStore: () =>
        openStore(config.store, {
          disk,
          random,
          clock,
          retention: config.retention,
          restored: options.restored,
          acceptUnprovenDurability: options['accept-unproven-durability'],
        }),
    },
    { acceptNewIdentity: options['accept-new-identity'] },
  );
  log.info(
    {
      operatorsPort: controlPlane.operatorsPort,
      agentsPort: controlPlane.agentsPort,
      identity: identityFolder(config),
      store: controlPlane.store.driver,
      survivesPowerLoss: controlPlane.store.survivesPowerLoss,
    },
    'ready',
  );
  return { controlPlane, log };
}

try {
  const { controlPlane, log } = await start(process.argv.slice(2));
  const stop = (signal: string) => {
    log.info({ signal }, 'stopping');
    controlPlane.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ cause: String(error) }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
