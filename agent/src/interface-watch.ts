/**
 * Watches the interfaces that hosts boot from. A socket belongs to the interface that was there
 * when it was opened. An interface that appears later, or disappears and returns, needs new
 * sockets, which only a new start opens. This module reports when a new start is due.
 */
import type { Cancel, Clock, Disk, Log } from '@rackwright/platform';

/** The kernel's number of each interface that is there, by name; a new one for each coming. */
export type InterfaceIndexes = ReadonlyMap<string, number>;

export interface InterfaceWatchParts {
  readonly clock: Clock;
  readonly disk: Pick<Disk, 'read'>;
  readonly log: Log;
  readonly names: readonly string[];
  /** The interfaces at the opening of the sockets. */
  readonly atStart: InterfaceIndexes;
  /** Called once; nothing is read afterwards. */
  readonly onCome: (name: string) => void;
}

/** It has to be there at two checks: an unstable card is waited for. */
const pollMs = 5_000;
/**
 * Lists the interfaces of this process's network; /sys may show another network's, as in a
 * container. It has one line for each multicast address that an interface receives, and each
 * interface with IP receives some: number, name.
 */
const listPath = '/proc/self/net/dev_mcast';
const listLine = /^(\d{1,10})\s+(\S+)\s/;

/** The present interfaces. Never rejects: an interface that cannot be read counts as absent. */
export async function readInterfaces(disk: Pick<Disk, 'read'>): Promise<InterfaceIndexes> {
  // Another check follows in a few seconds.
  const bytes = await disk.read(listPath).catch(() => undefined);
  const indexes = new Map<string, number>();
  for (const line of new TextDecoder().decode(bytes).split('\n')) {
    const [, index, name] = listLine.exec(line) ?? [];
    if (name !== undefined) indexes.set(name, Number(index));
  }
  return indexes;
}

/** Checks from now on until an interface has appeared, or it is cancelled. */
export function watchInterfaces(parts: InterfaceWatchParts): Cancel {
  const { clock, disk, log, names, atStart, onCome } = parts;
  if (names.length === 0) return () => {};
  let isOver = false;
  let cancelTimer: Cancel;
  const poll = async (before: InterfaceIndexes): Promise<void> => {
    const now = await readInterfaces(disk);
    if (isOver) return;
    for (const name of names) {
      if (before.has(name) && !now.has(name))
        log.warn({ interface: name }, 'a boot interface has gone');
    }
    const come = names.find((name) => {
      const index = now.get(name);
      return index !== undefined && index === before.get(name) && index !== atStart.get(name);
    });
    if (come === undefined) wait(now);
    else onCome(come);
  };
  const wait = (before: InterfaceIndexes): void => {
    cancelTimer = clock.after(pollMs, () => void poll(before));
  };
  wait(atStart);
  return () => {
    isOver = true;
    cancelTimer();
  };
}
