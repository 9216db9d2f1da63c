/**
 * The frames that the ramdisk's first process has received on the network cards: `lldp.sh` writes a
 * capture for each card, and the time since when it listens. Nothing waits for more: a switch sends
 * every 30 s.
 */
import { type Neighbor, neighborsIn } from '../lldp/capture.ts';
import { readBytes, readNumber, readText } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

/** Cards whose neighbours are kept; the ramdisk listens on as many. */
const cardsMax = 32;
/** Neighbours of one inventory: it is one bounded record. */
const neighborsOfAllMax = 32;

interface HeardNeighbors {
  readonly neighbors: Neighbor[];
  readonly listenedSeconds: number;
}

/** By the names of the cards; a card that was not listened on is left out. */
export async function readNeighbors(
  names: readonly string[],
  roots: SysRoots,
): Promise<ReadonlyMap<string, HeardNeighbors>> {
  const folder = `${roots.run ?? '/run'}/rackwright/lldp`;
  const [uptime = ''] = (await readText(roots.proc, 'uptime')).split('.');
  const cards = names.slice(0, cardsMax);
  const ofEachMax = Math.max(1, Math.floor(neighborsOfAllMax / cards.length));
  const found = new Map<string, HeardNeighbors>();
  for (const name of cards) {
    const since = await readText(folder, `${name}.since`);
    if (!/^\d{1,10}$/.test(since)) continue;
    const neighbors = neighborsIn(await readBytes(folder, `${name}.pcap`)).slice(0, ofEachMax);
    const end = (await readNumber(folder, `${name}.until`)) || Number(uptime);
    found.set(name, { neighbors, listenedSeconds: Math.max(1, end - Number(since)) });
  }
  return found;
}
