/**
 * Where the fleet's hosts are, from the rows of the fleet view. To check whether something belongs
 * to a host of a scope reads nothing from the store, and examines only hosts of the scope.
 *
 * Must not: decide about a host itself. The view lags by a moment; a host is judged by its own
 * record.
 */
import type { FieldValue, FleetView } from '../fleet-view/index.ts';
import { isInScope, poolLabel, type Scope } from './principal.ts';

/** A field of a host by which another resource belongs to it. */
export type LocationField = 'rack' | 'credential';

/** See the header. */
export class HostLocations {
  readonly #view: Pick<FleetView, 'rows'>;

  constructor(view: Pick<FleetView, 'rows'>) {
    this.#view = view;
  }

  /** Whether any host of the scope has this: "racks/RACK" or "credentials/CREDENTIAL". */
  some(scope: Scope, field: LocationField, name: string): boolean {
    for (const row of this.#view.rows('', new Map([[field, name]]), locationsOf(scope))) {
      if (row.kind !== 'host' || row[field] !== name) continue;
      const { rack, labels } = row;
      if (isInScope(scope, { rack, pool: labels[poolLabel] ?? '' })) return true;
    }
    return false;
  }
}

/** A host of the scope has one of these values; none: the scope is everywhere. */
export function locationsOf({ racks, pools }: Scope): readonly FieldValue[] {
  if (racks.length > 0) return racks.map((rack) => ['rack', rack] as const);
  return pools.map((pool) => ['label', `${poolLabel}=${pool}`] as const);
}
