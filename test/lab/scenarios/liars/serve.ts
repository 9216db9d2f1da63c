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

/** What serves a machine's disks. */
export interface Servers {
  /** By the name of the disk; none for disks whose commands pass through. */
  readonly nbd: ReadonlyMap<string, NbdServer>;
  /** How often the disk of this name has lied so far. */
  lies(name: string): number;
}

/** A disk with what it does to the one that trusts it. */
export type ServedDisk = LabDisk & LiarDisk;

/** Serves the disks that are served; the lab ends the servers. */
export async function serveDisks(lab: Lab, disks: readonly ServedDisk[]): Promise<Servers> {
  const nbd = new Map<string, NbdServer>();
  const lies = new Map<string, number>();
  const targets = disks.filter(({ bus }) => bus === 'scsiGeneric');
  for (const disk of disks.filter(({ isServed }) => isServed === true)) {
    const tell = (): void => void lies.set(disk.name, (lies.get(disk.name) ?? 0) + 1);
    const truth = fileStore(disk.image);
    const store = disk.lie === undefined ? truth : withLie(truth, disk.lie, nowMs, tell);
    if (disk.bus === 'scsiGeneric') {
      await startTarget({ lab, disk, store, tell, port: ISCSI_PORT + targets.indexOf(disk) });
      continue;
    }
    const server = await startNbdServer(disk.socket, store);
    lab.undo.add(`end the server of ${disk.name}`, () => server.close());
    nbd.set(disk.name, server);
  }
  return { nbd, lies: (name) => lies.get(name) ?? 0 };
}

async function startTarget(options: {
  readonly lab: Lab;
  readonly disk: ServedDisk;
  readonly store: BlockStore;
  readonly tell: () => void;
  readonly port: number;
}): Promise<void> {
  const { lab, disk, store: medium, tell, port } = options;
  const { laterSerial } = disk;
  let isWritten = false;
  const facts = {
    ...disk.scsi,
    get serial(): string {
      if (!isWritten || laterSerial === undefined) return disk.serial;
      tell();
      return laterSerial;
    },
  };
  const store: BlockStore = {
    ...medium,
    change: (change) => {
      isWritten ||= lengthOf(change) > 0;
      medium.change(change);
    },
  };
  const target = await startIscsiTarget({
    path: disk.socket,
    disk: scsiDisk(store, facts, nowMs, tell),
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
