/** Starts the Redfish face of a machine's BMC: `redfish-face.main.ts` in the lab's network. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedfishIdentity } from '@rackwright/sim/redfish';
import type { LabNetwork } from './netns.ts';
import { startProcess, until } from './processes.ts';
import type { LabMachine } from './qemu.ts';
import type { Undo } from './undo.ts';

const READY_WAIT_MS = 60_000;

/** What `redfish-face.main.ts` reads. */
export interface RedfishFaceConfig {
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
export async function startRedfishFace(options: {
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
  const config: RedfishFaceConfig = { ...access, folder, identity };
  const configFile = join(folder, 'redfish-face.json');
  const logFile = join(folder, 'redfish-face.log');
  writeFileSync(configFile, JSON.stringify(config));
  writeFileSync(logFile, '');
  const face = startProcess(undo, {
    name: `Redfish face of ${machine.name}`,
    file: process.execPath,
    args: [join(import.meta.dirname, './redfish-face.main.ts'), configFile],
    logFile,
    namespace: network.namespace,
  });
  const isReady = (): boolean =>
    !face.isRunning() || / ready$/m.test(readFileSync(logFile, 'utf8'));
  await until('the Redfish face', READY_WAIT_MS, isReady, logFile);
  if (!face.isRunning()) throw new Error(`${face.name} ended: ${readFileSync(logFile, 'utf8')}`);
}
