/** How far agents are with images that they fetch before a host needs them. */
import type { PrefetchedImage, RackId } from '@rackwright/messages';

/** How far an agent is with one image. */
export interface Prefetched {
  readonly fetchedBytes: bigint;
  readonly allBytes: bigint;
  readonly done: boolean;
  readonly problem: string;
  readonly atMs: number;
}

export type NamedImage = Pick<PrefetchedImage, 'reference' | 'architecture' | 'netboot'>;

/** What agents say of images that they fetch beforehand; of this replica's sessions alone. */
export class PrefetchProgress {
  readonly #racks = new Map<string, Map<string, Prefetched>>();

  of(rackId: RackId, named: NamedImage): Prefetched | undefined {
    return this.#racks.get(rackId)?.get(imageKey(named));
  }

  set(rackId: RackId, named: NamedImage, prefetched: Prefetched): void {
    const images = this.#racks.get(rackId) ?? new Map<string, Prefetched>();
    this.#racks.set(rackId, images.set(imageKey(named), prefetched));
  }

  /** Forgets what the list of a rack does not name any more. */
  keep(rackId: RackId, list: readonly NamedImage[]): void {
    const named = new Set(list.map(imageKey));
    for (const key of this.#racks.get(rackId)?.keys() ?? []) {
      if (!named.has(key)) this.#racks.get(rackId)?.delete(key);
    }
  }

  /** The session is over: nobody says anything of this rack here any more. */
  forget(rackId: RackId): void {
    this.#racks.delete(rackId);
  }
}

/** One text for each image of a list. */
export function imageKey({ reference, architecture, netboot }: NamedImage): string {
  return `${reference} ${architecture}${netboot ? ' netboot' : ''}`;
}
