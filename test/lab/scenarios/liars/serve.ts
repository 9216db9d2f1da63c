/** Starts the block servers and targets of a machine's disks, before it is switched on. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lab } from '../../lab.ts';
import { type BlockStore, fileStore, lengthOf } from '../../liars/block-store.ts';
import { startIscsiTarget } from '../../liars/iscsi-target.ts';
import { withLie } from '../../liars/lies.ts';
import { type NbdServer, startNbdServer } from '../../liars/nbd-server.ts';
import { scsiDisk } from '../../liars/scsi-disk.ts';
import { startProcess, until } from '../../processes.ts';
import { ISCSI_PORT, type LabDisk } from '../../qemu-disks.ts';
import type { LiarDisk } from './cases.ts';

const RELAY = join(import.meta.dirname, '../../liars/relay/main.ts');
const READY_WAIT_MS = 60_000;
const nowMs = (): number => performance.now();

/** Block servers by the name of the disk. */
export type Servers = ReadonlyMap<string, NbdServer>;

/** A disk with what it does to the one that believes it. */
export type ServedDisk = LabDisk & LiarDisk;

/** Serves the disks that are served; the lab ends the servers. */
export async function serveDisks(lab: Lab, disks: readonly ServedDisk[]): Promise<Servers> {
  const servers = new Map<string, NbdServer>();
  const targets = disks.filter(({ bus }) => bus === 'scsiGeneric');
  for (const disk of disks.filter(({ isServed }) => isServed === true)) {
    const truth = fileStore(disk.image);
    const store = disk.lie === undefined ? truth : withLie(truth, disk.lie, nowMs);
    if (disk.bus === 'scsiGeneric') {
      await startTarget(lab, disk, store, ISCSI_PORT + targets.indexOf(disk));
      continue;
    }
    const server = await startNbdServer(disk.socket, store);
    lab.undo.add(`end the server of ${disk.name}`, () => server.close());
    servers.set(disk.name, server);
  }
  return servers;
}

async function startTarget(
  lab: Lab,
  disk: ServedDisk,
  medium: BlockStore,
  port: number,
): Promise<void> {
  const facts = { serial: disk.serial, ...disk.scsi };
  const { laterSerial } = disk;
  const store: BlockStore = {
    ...medium,
    change: (change) => {
      if (laterSerial !== undefined && lengthOf(change) > 0) facts.serial = laterSerial;
      medium.change(change);
    },
  };
  const target = await startIscsiTarget({
    path: disk.socket,
    disk: scsiDisk(store, facts, nowMs),
    powerOff: store.powerOff,
  });
  lab.undo.add(`end the target of ${disk.name}`, async () => {
    await target.close();
    store.close();
  });
  const logFile = join(lab.folder, `relay-${disk.name}.log`);
  writeFileSync(logFile, '');
  startProcess(lab.undo, {
    name: `relay of ${disk.name}`,
    file: process.execPath,
    args: [RELAY, String(port), disk.socket],
    logFile,
    namespace: lab.network.namespace,
  });
  const isReady = (): boolean => readFileSync(logFile, 'utf8').includes('ready');
  await until(`the relay of ${disk.name}`, READY_WAIT_MS, isReady, logFile);
}
