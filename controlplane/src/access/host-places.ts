/**
 * Where all hosts are, as the store changes: so that to judge what belongs to some host of a scope
 * reads nothing, however many hosts there are and however many ask.
 *
 * Must not: decide about a host itself. It is a moment behind; a host is judged by its own record.
 */
import { type Host, store as wire } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { type FollowedValues, type Following, followValues } from '../following/index.ts';
import { sharedRecordOf } from '../records/index.ts';
import { type Place, placeOf } from './principal.ts';

/** Where a host is, and which credential its BMC is reached with. */
export interface HostPlace extends Place {
  /** "credentials/CREDENTIAL" */
  readonly credential: string;
}

/** Of a host as it is. */
export function hostPlaceOf(host: Host | undefined): HostPlace {
  return { ...placeOf(host), credential: host?.spec?.bmc?.credential ?? '' };
}

/** See the header. */
export class HostPlaces {
  readonly #places = new Map<string, HostPlace>();
  readonly #followed: FollowedValues;

  constructor(following: Following, store: StateStore) {
    this.#followed = followValues(following, 'hosts', (key, entry) => {
      if (entry === undefined) this.#places.delete(key);
      else {
        const { host } = sharedRecordOf(store, wire.HostRecordSchema, entry);
        this.#places.set(key, hostPlaceOf(host));
      }
    });
  }

  /** Resolves once every host is known. */
  start(): Promise<void> {
    return this.#followed.start();
  }

  stop(): void {
    this.#followed.stop();
  }

  /** Whether any host's place is so. */
  some(isSo: (place: HostPlace) => boolean): boolean {
    for (const place of this.#places.values()) if (isSo(place)) return true;
    return false;
  }
}
