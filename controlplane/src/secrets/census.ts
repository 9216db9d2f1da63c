/** How many records are under which secrets key, and giving them the one that seals. */
import { type Random, randomId } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { sealedPlaces } from './places.ts';
import { SecretError, type Secrets } from './secrets.ts';

/** Records under one key. */
export interface KeyUse {
  readonly records: number;
  /** Keys of some of the records, as resource names. */
  readonly names: readonly string[];
}

/** Records named of one key. */
const namesMax = 5;

/** Counts every record that holds something sealed, by key. */
export async function countByKey(store: StateStore): Promise<ReadonlyMap<string, KeyUse>> {
  const uses = new Map<string, KeyUse>();
  for (const place of sealedPlaces) {
    const { entries } = await answered(store.list(place.prefix));
    for (const { key, value } of entries) {
      for (const keyId of new Set(place.keyIdsOf(value))) {
        const { records, names } = uses.get(keyId) ?? { records: 0, names: [] };
        const named = names.length < namesMax ? [...names, nameOf(key)] : names;
        uses.set(keyId, { records: records + 1, names: named });
      }
    }
  }
  return uses;
}

function nameOf(key: string): string {
  return key.replaceAll('.', '/');
}

/** What one pass has come to. */
export interface Resealed {
  readonly changed: number;
  /** Another write was faster: another pass will do it. */
  readonly left: number;
  /** Why some could not be changed, one line each. */
  readonly problems: readonly string[];
}

const problemsMax = 5;

/** Gives every record the key that seals. May be cut short anywhere, raced and repeated. */
export async function resealAll(
  { store, random }: { readonly store: StateStore; readonly random: Random },
  secrets: Secrets,
): Promise<Resealed> {
  let changed = 0;
  let left = 0;
  const problems: string[] = [];
  for (const place of sealedPlaces) {
    const { entries } = await answered(store.list(place.prefix));
    for (const { key, value, revision } of entries) {
      try {
        const next = place.resealed(value, secrets);
        if (next === undefined) continue;
        const written = await store.put(key, next, revision, randomId(random));
        if (written.kind === 'ok') changed += 1;
        else left += 1;
      } catch (error) {
        if (!(error instanceof SecretError)) throw error;
        if (problems.length < problemsMax) problems.push(error.message);
      }
    }
  }
  return { changed, left, problems };
}
