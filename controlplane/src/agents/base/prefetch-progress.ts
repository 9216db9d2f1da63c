/** The progress of agents with images that they fetch before a host needs them. */
import type { PrefetchedImage, RackId } from '@rackwright/messages';

/** The progress of an agent with one image. */
export interface PrefetchState {
  readonly fetchedBytes: bigint;
  readonly allBytes: bigint;
  readonly done: boolean;
  readonly problem: string;
  readonly atMs: number;
}

export type NamedImage = Pick<PrefetchedImage, 'reference' | 'architecture' | 'netboot'>;

/** What agents report of prefetched images; only of this replica's sessions. */
export class PrefetchProgress {
  readonly #racks = new Map<RackId, Map<string, PrefetchState>>();

  of(rackId: RackId, named: NamedImage): PrefetchState | undefined {
    return this.#racks.get(rackId)?.get(imageKey(named));
  }

  set(rackId: RackId, named: NamedImage, prefetched: PrefetchState): void {
    const images = this.#racks.get(rackId) ?? new Map<string, PrefetchState>();
    this.#racks.set(rackId, images.set(imageKey(named), prefetched));
  }

  /** Forgets images that are no longer in the list of a rack. */
  keep(rackId: RackId, list: readonly NamedImage[]): void {
    const named = new Set(list.map(imageKey));
    for (const key of this.#racks.get(rackId)?.keys() ?? []) {
      if (!named.has(key)) this.#racks.get(rackId)?.delete(key);
    }
  }

  /** The session is over: no reports of this rack arrive here any more. */
  forget(rackId: RackId): void {
    this.#racks.delete(rackId);
  }
}

/** One text for each image of a list. */
export function imageKey({ reference, architecture, netboot }: NamedImage): string {
  return `${reference} ${architecture}${netboot ? ' netboot' : ''}`;
}
