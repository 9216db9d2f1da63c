/**
 * Kernels and ramdisks of hosts that run without a disk. They are pinned here for as long as the
 * boot snapshot names them, so such a host boots at any time, also while the control plane and the
 * registry are unreachable.
 *
 * N1 A host boots what its snapshot names, and nothing until that is here whole.
 * N2 A missing file is fetched until it is here, however long that takes. A host that asks
 *    meanwhile gets the reason for the wait. Our disk is checked now and then; a file that is lost
 *    or damaged there is fetched again.
 * N3 A fetch uses the authority and the credential of the newest snapshot. Files that are here stay
 *    here.
 */
import { equals } from '@bufbuild/protobuf';
import { agent, type DeploymentId } from '@rackwright/messages';
import type { NetbootSet } from '@rackwright/oci';
import { type Clock, errorText, type Log, pause } from '@rackwright/platform';
import {
  type CredentialOf,
  type HostImageProgress,
  type HostImages,
  type ImageArchitecture,
  type PinnedHostImage,
  wantedImage,
} from '../images/index.ts';

export interface NetbootImagesParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly images: Pick<HostImages, 'pin'>;
  readonly architecture: ImageArchitecture;
  /**
   * The credential that is known now: nothing waits for a secret while hosts wait for their boot.
   */
  readonly credential: CredentialOf;
}

/** Between two tries of a failed fetch. */
const retryMs = 20_000;
/** Between two checks of the files on the disk. */
const recheckMs = 60_000;

export type NetbootImage =
  | { readonly kind: 'ready'; readonly image: NetbootSet }
  | { readonly kind: 'waiting'; readonly text: string };

interface NetbootFetch {
  readonly stop: AbortController;
  /** The present source of the fetch (N3). */
  from: agent.HostImage;
  /** Ends a try that uses an earlier source. */
  changed: AbortController;
  /** Once it is here. */
  image?: NetbootSet | undefined;
  text: string;
}

export class NetbootImages {
  readonly #parts: NetbootImagesParts;
  /** By reference. */
  readonly #wanted = new Map<string, NetbootFetch>();

  constructor(parts: NetbootImagesParts) {
    this.#parts = parts;
  }

  /** From here on these are pinned, and no others. */
  want(deployments: readonly agent.Deployment[]): void {
    const named = new Map<string, agent.Deployment>();
    for (const one of deployments) {
      if (one.image !== undefined) named.set(one.image.reference, one);
    }
    for (const [reference, wanted] of [...this.#wanted]) {
      if (named.has(reference)) continue;
      this.#wanted.delete(reference);
      wanted.stop.abort();
    }
    for (const [reference, { image: from, id }] of named) {
      if (from === undefined) continue;
      const before = this.#wanted.get(reference);
      if (before !== undefined) {
        askAs(before, from);
        continue;
      }
      const controllers = { stop: new AbortController(), changed: new AbortController() };
      const wanted: NetbootFetch = { ...controllers, from, text: 'it is being looked for' };
      this.#wanted.set(reference, wanted);
      void this.#keep(id, wanted);
    }
  }

  find({ image }: agent.Deployment): NetbootImage {
    const wanted = this.#wanted.get(image?.reference ?? '');
    if (wanted === undefined) return { kind: 'waiting', text: 'nothing is known of its image' };
    if (wanted.image !== undefined) return { kind: 'ready', image: wanted.image };
    return { kind: 'waiting', text: wanted.text };
  }

  stop(): void {
    this.want([]);
  }

  /** Pins it until it is wanted no more (N2). Never rejects. */
  async #keep(deployment: DeploymentId, wanted: NetbootFetch): Promise<void> {
    const { signal } = wanted.stop;
    while (!signal.aborted) {
      const { from, changed } = wanted;
      const trying = AbortSignal.any([signal, changed.signal]);
      try {
        const pinned = await this.#pin(from, deployment, wanted, trying);
        do await pause(this.#parts.clock, recheckMs, signal);
        while (!signal.aborted && (await pinned.isWhole()));
        wanted.image = undefined;
        wanted.text = 'it was lost from the disk of the agent';
        pinned.release();
      } catch (error) {
        const message = errorText(error);
        if (signal.aborted) return;
        if (trying.aborted) continue;
        if (wanted.text !== message) {
          const fields = { image: from.reference };
          const text = 'an image that hosts boot over the network is not here';
          this.#parts.log.warn(fields, text, error);
        }
        wanted.text = message;
        await pause(this.#parts.clock, retryMs, trying);
      }
    }
  }

  async #pin(
    from: agent.HostImage,
    deployment: DeploymentId,
    wanted: NetbootFetch,
    signal: AbortSignal,
  ): Promise<PinnedHostImage> {
    const { architecture, credential, images } = this.#parts;
    const resolved = await wantedImage(from, architecture, 'netboot', credential);
    if ('type' in resolved) throw new Error(resolved.message);
    const pinned = await images.pin(deployment, resolved, signal, (progress) => {
      wanted.text = textOf(progress);
    });
    pinned.giveBackSlot();
    if (pinned.image.netboot !== undefined) wanted.image = pinned.image.netboot;
    return pinned;
  }
}

/** N3 */
function askAs(wanted: NetbootFetch, from: agent.HostImage): void {
  if (equals(agent.HostImageSchema, wanted.from, from)) return;
  wanted.from = from;
  if (wanted.image !== undefined) return;
  const { changed } = wanted;
  wanted.changed = new AbortController();
  changed.abort();
}

function textOf(progress: HostImageProgress): string {
  switch (progress.phase) {
    case 'queued':
      return `queued, place ${progress.position}`;
    case 'admitted':
      return 'its registry is asked for it';
    case 'fetching':
      return `${progress.fetchedBytes} of ${progress.allBytes} bytes are here`;
  }
}
