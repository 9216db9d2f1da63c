/** NATS as the store of the demo: three servers that sync each write, as in production. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { NATS_PROGRAM, NatsCluster, serverMissing } from '@rackwright/store/testing';

/** Starts them in the demo's folder. Throws with what to install when there is no such program. */
export async function startNats(folder: string): Promise<NatsCluster> {
  const missing = serverMissing();
  if (missing !== undefined) throw new Error(missing);
  // The path identifies the process as the demo's.
  const program = join(folder, 'programs', 'nats-server');
  symlinkSync(NATS_PROGRAM, program);
  return await NatsCluster.start({ servers: 3, syncAlways: true, parent: folder, program });
}

/** The section `store` of a control plane's configuration. */
export function storeOf({ addresses, monitors }: NatsCluster): object {
  const servers = addresses.map((address) => `nats://${address}`);
  return { driver: 'nats', servers, bucket: 'rackwright', replicas: 3, monitors };
}
