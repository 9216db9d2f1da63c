/** Counts the records under each secrets key, and seals them again with the present key. */
import { type Random, randomId } from '@rackwright/platform';
import { asWriteId, type StateStore } from '@rackwright/store';
import { orUnavailable } from '../records/index.ts';
import { sealedRecords } from './sealed-records.ts';
import { SecretError, type Secrets } from './secrets.ts';

/** Records under one key. */
export interface KeyUse {
  readonly records: number;
  /** Names of some of the records' resources. */
  readonly names: readonly string[];
}

/** The most records that are named for one key. */
const namesMax = 5;

/** Counts every record with sealed data, by key. */
export async function countByKey(store: StateStore): Promise<ReadonlyMap<string, KeyUse>> {
  const uses = new Map<string, KeyUse>();
  for (const sealed of sealedRecords) {
    const { entries } = await orUnavailable(store.list(sealed.prefix));
    for (const { key, value } of entries) {
      for (const keyId of new Set(sealed.keyIdsOf(value))) {
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

/** The result of one pass. */
export interface ResealOutcome {
  readonly changed: number;
  /** Another writer was first: another pass will do it. */
  readonly left: number;
  /** Why some could not be changed, one line each. */
  readonly problems: readonly string[];
}

const problemsMax = 5;

/** Seals every record with the present key. May be interrupted anywhere, raced and repeated. */
export async function resealAll(
  { store, random }: { readonly store: StateStore; readonly random: Random },
  secrets: Secrets,
): Promise<ResealOutcome> {
  let changed = 0;
  let left = 0;
  const problems: string[] = [];
  for (const sealed of sealedRecords) {
    const { entries } = await orUnavailable(store.list(sealed.prefix));
    for (const { key, value, revision } of entries) {
      try {
        const next = sealed.resealed(value, secrets);
        if (next === undefined) continue;
        const written = await store.put(key, next, revision, asWriteId(randomId(random)));
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
