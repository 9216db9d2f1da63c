/**
 * Starts the Redfish service of a machine's BMC: `redfish-service.main.ts` in the lab's network.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedfishIdentity } from '@rackwright/sim/redfish';
import type { LabNetwork } from './netns.ts';
import { startProcess, until } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import type { Undo } from './undo.ts';

const READY_WAIT_MS = 60_000;

/** What `redfish-service.main.ts` reads. */
export interface RedfishServiceConfig {
  /** Of the machine. */
  readonly folder: string;
  /** Where it listens, port 443. */
  readonly address: string;
  readonly user: string;
  readonly password: string;
  readonly identity: RedfishIdentity;
  readonly controlScript: string;
}

/** Settles when it answers; `undo` ends it. */
export async function startRedfishService(options: {
  readonly undo: Undo;
  readonly network: LabNetwork;
  readonly machine: LabMachine;
  readonly address: string;
  readonly user: string;
  readonly password: string;
  readonly controlScript: string;
}): Promise<void> {
  const { undo, network, machine, ...access } = options;
  const { folder, uuid, serial } = machine;
  const identity = { uuid, serial, manufacturer: 'Rackwright', model: 'Lab' };
  const config: RedfishServiceConfig = { ...access, folder, identity };
  const configFile = join(folder, 'redfish-service.json');
  const logFile = join(folder, 'redfish-service.log');
  writeFileSync(configFile, JSON.stringify(config));
  writeFileSync(logFile, '');
  const service = startProcess(undo, {
    name: `Redfish service of ${machine.name}`,
    file: process.execPath,
    args: [join(import.meta.dirname, './redfish-service.main.ts'), configFile],
    logFile,
    namespace: network.namespace,
  });
  const isReady = (): boolean =>
    !service.isRunning() || / ready$/m.test(readFileSync(logFile, 'utf8'));
  await until('the Redfish service', READY_WAIT_MS, isReady, logFile);
  if (!service.isRunning())
    throw new Error(`${service.name} ended: ${readFileSync(logFile, 'utf8')}`);
}
