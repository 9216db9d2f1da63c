/**
 * Where all hosts are, by the fleet view: to judge what belongs to some host of a scope reads
 * nothing, however many ask.
 *
 * Must not: decide about a host itself. It is a moment behind; a host is judged by its own record.
 */
import type { Host } from '@rackwright/messages';
import type { FleetView } from '../fleet-view/index.ts';
import { type Place, placeOf, poolLabel } from './principal.ts';

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
  readonly #view: Pick<FleetView, 'rows'>;

  constructor(view: Pick<FleetView, 'rows'>) {
    this.#view = view;
  }

  /** Whether any host's place is so. */
  some(isSo: (place: HostPlace) => boolean): boolean {
    for (const row of this.#view.rows()) {
      if (row.kind !== 'host') continue;
      const { rack, labels, credential } = row;
      if (isSo({ rack, pool: labels[poolLabel] ?? '', credential })) return true;
    }
    return false;
  }
}
