/**
 * Images that the rack is to have before a host needs them, fetched one after another in the
 * background.
 *
 * F1 Each fetch waits for a slot like those of hosts (`ImageAdmission`) and delays a host by one
 *    slot at most.
 * F2 Progress is reported now and then, and once more at each permanent change. A new session gets
 *    all of it anew.
 * F3 A failed fetch is repeated for as long as its image is on the list.
 * F4 A prefetched image is kept in preference to everything that is not pinned.
 * F5 An image that had to be dropped is no longer reported as done. It is fetched again once it
 *    fits beside everything that is pinned and preferred: two images that do not fit together do
 *    not replace each other in turn.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { Digest } from '@rackwright/oci';
import { type Clock, errorText, type Log, pause } from '@rackwright/platform';
import type { HostImageProgress, HostImages } from './host-images.ts';
import { architectureNamed, type CredentialOf, wantedImage } from './source.ts';

export interface PrefetcherParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: Pick<HostImages, 'prefetch' | 'prefer' | 'isHere' | 'hasRoom'>;
  readonly credential: CredentialOf;
  readonly report: (image: agent.ImagePrefetched) => void;
}

/** Longer lists are cut. */
const imagesMax = 256;
const retryMs = 60_000;
const reportIntervalMs = 2_000;
const noRoom = 'it had to make room for images that hosts use; it is fetched again once there is';

interface ListedImage {
  readonly wanted: agent.PrefetchImage;
  digests: readonly Digest[];
  reported: agent.ImagePrefetched;
  reportedAtMs: number;
}

export class Prefetcher {
  readonly #parts: PrefetcherParts;
  /** By a key that is equal for equal entries; in the order of the list. */
  #listed = new Map<string, ListedImage>();
  /** Ends the fetch under way, or the wait for the next. */
  #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(parts: PrefetcherParts) {
    this.#parts = parts;
  }

  /** The whole list; images that are not on it any more are given up. */
  replace({ images }: Pick<agent.PrefetchImages, 'images'>): void {
    const { log } = this.#parts;
    if (images.length > imagesMax) {
      log.warn({ images: images.length, imagesMax }, 'too many images to fetch beforehand');
    }
    const taken = images.slice(0, imagesMax);
    if (this.#isListed(taken)) return;
    const before = this.#listed;
    this.#listed = new Map(
      taken.map((wanted) => {
        const key = keyOf(wanted);
        // Its source may have changed: another mirror, a newer credential.
        return [key, { ...(before.get(key) ?? listed(wanted)), wanted }];
      }),
    );
    this.#prefer();
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#run(this.#stop.signal);
  }

  /** Each session sends the whole list again: an unchanged list leaves the work as it is. */
  #isListed(images: readonly agent.PrefetchImage[]): boolean {
    const all = [...this.#listed.values()];
    return (
      all.length === images.length &&
      all.every(({ wanted }, at) => {
        const other = images[at];
        return other !== undefined && equals(agent.PrefetchImageSchema, wanted, other);
      })
    );
  }

  /** F2. */
  sessionOpened(): void {
    for (const one of this.#listed.values()) this.#report(one, {}, { always: true });
  }

  stop(): void {
    this.replace({ images: [] });
  }

  /** The one before ends first: it has been aborted. */
  #run(signal: AbortSignal): void {
    const before = this.#running ?? Promise.resolve();
    this.#running = before.then(() => this.#fetchAll(signal));
  }

  /** Never rejects. */
  async #fetchAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#listed.size > 0) {
      for (const one of [...this.#listed.values()]) {
        if (signal.aborted) return;
        if (!this.#isSettled(one)) await this.#fetch(one, signal);
      }
      // F3, F5
      if (!signal.aborted) await pause(this.#parts.clock, retryMs, signal);
    }
  }

  /** Whether there is nothing to be fetched of it now (F5). */
  #isSettled(one: ListedImage): boolean {
    const { images } = this.#parts;
    const { reported, digests } = one;
    // Never fetched yet.
    if (digests.length === 0) return reported.done;
    if (images.isHere(digests)) return reported.done;
    const hasRoom = images.hasRoom(Number(reported.allBytes));
    if (reported.done) {
      this.#report(
        one,
        { done: false, fetchedBytes: 0n, problem: hasRoom ? '' : noRoom },
        { always: true },
      );
    }
    return !hasRoom;
  }

  async #fetch(one: ListedImage, signal: AbortSignal): Promise<void> {
    const { credential, images } = this.#parts;
    const { image, netboot, architecture: name } = one.wanted;
    const architecture = architectureNamed(name);
    try {
      if (image === undefined) throw new Error('the entry has no field image');
      if (architecture === undefined) throw new Error(`no images are made for "${name}"`);
      const needs = netboot ? 'netboot' : 'disk';
      const wanted = await wantedImage(image, architecture, needs, credential);
      if ('type' in wanted) throw new Error(wanted.message);
      one.digests = await images.prefetch(wanted, signal, (progress) =>
        this.#report(one, fieldsOf(progress), { always: false }),
      );
      this.#prefer();
      this.#report(one, { done: true, problem: '' }, { always: true });
    } catch (error) {
      if (signal.aborted) return;
      const problem = errorText(error);
      const fields = { image: image?.reference ?? '' };
      this.#parts.log.warn(fields, 'an image could not be fetched beforehand', error);
      this.#report(one, { problem }, { always: true });
    }
  }

  /** F4 */
  #prefer(): void {
    this.#parts.images.prefer([...this.#listed.values()].flatMap(({ digests }) => [...digests]));
  }

  #report(
    one: ListedImage,
    fields: Partial<agent.ImagePrefetched>,
    { always }: { readonly always: boolean },
  ): void {
    const nowMs = this.#parts.clock.suspendAwareMs();
    one.reported = create(agent.ImagePrefetchedSchema, { ...one.reported, ...fields });
    if (!always && nowMs - one.reportedAtMs < reportIntervalMs) return;
    one.reportedAtMs = nowMs;
    this.#parts.report(one.reported);
  }
}

function fieldsOf(progress: HostImageProgress): Partial<agent.ImagePrefetched> {
  if (progress.phase !== 'fetching') return {};
  const { fetchedBytes, allBytes } = progress;
  return { fetchedBytes: BigInt(fetchedBytes), allBytes: BigInt(allBytes), problem: '' };
}

function keyOf({ image, architecture, netboot }: agent.PrefetchImage): string {
  return JSON.stringify([image?.reference ?? '', architecture, netboot]);
}

function listed(wanted: agent.PrefetchImage): ListedImage {
  const { image, architecture, netboot } = wanted;
  const reference = image?.reference ?? '';
  const reported = create(agent.ImagePrefetchedSchema, { reference, architecture, netboot });
  return { wanted, reported, digests: [], reportedAtMs: Number.NEGATIVE_INFINITY };
}
