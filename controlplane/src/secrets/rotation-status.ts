/** The status of the secrets key's rotation, in numbers and words. Pure. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { counted, type SecretsKeySchema, verbFor, type store as wire } from '@rackwright/messages';
import type { KeyUse } from './census.ts';

type Uses = ReadonlyMap<string, KeyUse>;

/** The response without its source and its wait. */
export function describeKey(
  record: wire.SecretsKeyRecord,
  uses: Uses,
  readers: readonly Reader[],
  keyIdsHere: readonly string[],
): MessageInitShape<typeof SecretsKeySchema> {
  const { keyId, nextKeyId, activeTime, askedTime, askedBy } = record;
  const keyIds = new Set([keyId, ...(nextKeyId === '' ? [] : [nextKeyId]), ...keyIdsHere]);
  for (const id of uses.keys()) keyIds.add(id);
  return {
    ...{ keyId, nextKeyId, askedBy },
    ...(activeTime === undefined ? {} : { activeTime }),
    ...(askedTime === undefined ? {} : { askedTime }),
    uses: [...keyIds].map((id) => {
      const { records = 0, names = [] } = uses.get(id) ?? {};
      return { keyId: id, records, names: [...names], here: keyIdsHere.includes(id) };
    }),
    replicas: readers.map(({ replica, record: { keyIds: ids, time, problem } }) => ({
      ...{ replica, problem, keyIds: ids },
      ...(time === undefined ? {} : { lastSeenTime: time }),
    })),
  };
}

/** What the rotation waits for; empty: nothing. */
export function waitingFor(
  { keyId, nextKeyId }: wire.SecretsKeyRecord,
  uses: Uses,
  readers: readonly Reader[],
): string {
  const lacking = readers.flatMap(({ replica, record: { keyIds, problem } }) => {
    const missing = [keyId, nextKeyId].filter((id) => id !== '' && !keyIds.includes(id));
    return missing.map((id) => ({ replica, id, problem }));
  });
  const others = [...uses].filter(([id]) => id !== keyId);
  return [
    ...lacking.map(({ replica, id, problem }) => {
      const why = problem === '' ? 'its source must hold it' : problem;
      const seals = id === keyId ? ', which seals' : '';
      return `replica ${replica} does not have key ${id}${seals} yet, and reads on: ${why}`;
    }),
    ...others.map(([id, { records, names }]) => {
      const known = readers.some(({ record }) => record.keyIds.includes(id));
      const some = names.join(', ');
      const count = `${counted(records, 'record')} ${verbFor(records)}`;
      if (known) return `${count} still under key ${id} (${some})`;
      return (
        `${count} under key ${id}, which no replica has (${some}): put it behind ` +
        'the others and rotate again, or set these secrets anew'
      );
    }),
  ].join('; ');
}

/** A replica, as recorded in the store. */
export interface Reader {
  readonly replica: string;
  readonly record: wire.SecretsReaderRecord;
}
