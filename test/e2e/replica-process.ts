/**
 * One replica of the control plane as a process of its own, on NATS: what `main.ts` starts, but
 * with certificates and stages of seconds, which no configuration may ask for.
 *
 *     node test/e2e/replica-process.ts CONFIGURATION.json TIMING.json
 */
import { readFile } from 'node:fs/promises';
import { parseConfig, startControlPlane, type TrustTiming } from '@rackwright/controlplane';
import { nodeClock, nodeDisk, nodeLog, nodeRandom } from '@rackwright/platform/node';
import { openNatsStore, RETENTION_DEFAULT } from '@rackwright/store';

const [configFile = '', timingFile = ''] = process.argv.slice(2);
const config = parseConfig(await readFile(configFile, 'utf8'));
const trustTiming = JSON.parse(await readFile(timingFile, 'utf8')) as Partial<TrustTiming>;
const { store } = config;
if (store.driver !== 'nats') throw new Error('replicas share a store on NATS');
const { servers, bucket, replicas, monitors: urls } = store;
const random = nodeRandom();
const durability = { kind: 'monitors', urls } as const;
const retention = { ...RETENTION_DEFAULT, historyPrefixes: ['hosts', 'facts'] };
const controlPlane = await startControlPlane(
  config,
  {
    ...{ clock: nodeClock(), random, disk: nodeDisk(), log: nodeLog('info') },
    crashPoint: () => undefined,
    openStore: () => openNatsStore({ servers, bucket, replicas, random, retention, durability }),
  },
  { trustTiming },
);
process.stdout.write('ready\n');
process.once('SIGTERM', () => {
  void controlPlane.close().then(() => process.exit(0));
});
