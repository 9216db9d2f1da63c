/**
 * Sends the agent of one session the images to prefetch, and takes its progress.
 *
 * Invariants:
 * 1. The whole list is sent again whenever the list or the access to its registries has changed,
 *    and only to an agent that has announced the steps of deployments (R8).
 * 2. A secret is sent before the list that needs it, once for each version, and only where it may
 *    go.
 * 3. The progress of an image is kept only in memory, and only for images in the list.
 */
import { create, equals } from '@bufbuild/protobuf';
import {
  agent,
  awaitImageStep,
  type ImageRegistry,
  type PrefetchedImage,
  type RackId,
  type store as wire,
} from '@rackwright/messages';
import { credentialVersions } from '../../host/index.ts';
import {
  credentialsOfRegistries,
  hostImageOf,
  readImageName,
  registryOf,
} from '../../images/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import { imageKey, type NamedImage } from '../base/prefetch-progress.ts';
import type { SessionSink } from '../base/sink.ts';
import type { GivenSecrets } from './given-secrets.ts';

/** The longest delay until a change elsewhere, such as of a credential, is noticed. */
const recheckMs = 30_000;
/** Longest stored reason. */
const problemCharsMax = 500;

export class Prefetches {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  readonly #send: SessionSink['send'];
  #sent: agent.PrefetchImages | undefined;
  readonly #secrets: GivenSecrets;
  #list: readonly PrefetchedImage[] = [];
  #checkedAtMs = 0;
  #seen = '';
  #refreshing: Promise<void> = Promise.resolve();

  constructor(
    deps: SessionDependencies,
    rackId: RackId,
    send: SessionSink['send'],
    secrets: GivenSecrets,
  ) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#send = send;
    this.#secrets = secrets;
  }

  /** A heartbeat came; `rack` and `fleet` are what the store has now. */
  onHeartbeat(rack: wire.RackRecord | undefined, fleet: wire.FleetRecord | undefined): void {
    const list = rack?.prefetchedImages ?? [];
    const nowMs = this.#deps.clock.nowMs();
    const { registries = [], internalAddresses = [] } = fleet?.fleet?.spec ?? {};
    const seen = JSON.stringify([list.map(imageKey), registries, internalAddresses]);
    const isLate = list.length > 0 && nowMs - this.#checkedAtMs >= recheckMs;
    if (this.#sent !== undefined && seen === this.#seen && !isLate) return;
    this.#checkedAtMs = nowMs;
    this.#seen = seen;
    this.#list = list;
    this.#deps.prefetched?.keep(this.#rackId, list);
    const knows = rack?.agentSteps.some(({ name }) => name === awaitImageStep) ?? false;
    if (!knows) return this.#reportTooOld();
    this.#refreshing = this.#refreshing
      .then(() => this.#refresh(list, fleet))
      .catch((error: unknown) => {
        this.#deps.log.warn(
          { rack: this.#rackId },
          'no list of images could be sent; tried again later',
          error,
        );
      });
  }

  /** The agent reports its progress (3). */
  receiveProgress({ reference, architecture, netboot, ...progress }: agent.ImagePrefetched): void {
    const named = { reference, architecture, netboot };
    if (!this.#list.some((each) => imageKey(each) === imageKey(named))) return;
    const { fetchedBytes, allBytes, done } = progress;
    const problem = progress.problem.slice(0, problemCharsMax);
    const atMs = this.#deps.clock.nowMs();
    this.#deps.prefetched?.set(this.#rackId, named, {
      ...{ fetchedBytes, allBytes, done, problem, atMs },
    });
  }

  closed(): void {
    this.#deps.prefetched?.forget(this.#rackId);
  }

  #reportTooOld(): void {
    for (const each of this.#list) this.#cannot(each, 'its agent is too old to fetch beforehand');
  }

  #cannot(named: NamedImage, problem: string): void {
    const [fetchedBytes, allBytes, atMs] = [0n, 0n, this.#deps.clock.nowMs()];
    const progress = { fetchedBytes, allBytes, done: false, problem, atMs };
    this.#deps.prefetched?.set(this.#rackId, named, progress);
  }

  async #refresh(
    list: readonly PrefetchedImage[],
    fleet: wire.FleetRecord | undefined,
  ): Promise<void> {
    const { store } = this.#deps;
    const versions = await credentialVersions({ store }, fleet);
    const registries = fleet?.fleet?.spec?.registries;
    const images: agent.PrefetchImage[] = [];
    for (const { reference, architecture, netboot } of list) {
      const named = { reference, architecture, netboot };
      const found = hostImageOf(reference, fleet?.fleet?.spec, versions);
      const problem =
        found.kind === 'refused' ? found.problem : await this.#give(reference, registries);
      if (problem !== undefined) this.#cannot(named, problem);
      else if (found.kind === 'ok') {
        images.push(
          create(agent.PrefetchImageSchema, { image: found.image, architecture, netboot }),
        );
      }
    }
    const value = create(agent.PrefetchImagesSchema, { images });
    if (this.#sent !== undefined && equals(agent.PrefetchImagesSchema, this.#sent, value)) return;
    this.#sent = value;
    this.#send({ case: 'prefetchImages', value });
  }

  /** Invariant 2; returns why a secret cannot be sent. */
  async #give(
    reference: string,
    registries: readonly ImageRegistry[] | undefined,
  ): Promise<string | undefined> {
    const read = readImageName(reference);
    const registry = read.kind === 'ok' ? registryOf(registries, read.name.registry) : undefined;
    const names = credentialsOfRegistries(registry === undefined ? [] : [registry]);
    for (const name of names) {
      const problem = await this.#secrets.give(name);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
}
