/**
 * Certificate authorities in the identity's folder.
 *
 *     ca.pem      every trusted certificate: the source of operators' CA files
 *     ca.sealed   a copy of the authorities' record, keys sealed, in case the store is lost
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Authority_Stage as Stage, systemActor, store as wire } from '@rackwright/messages';
import { type AuthorityMaking, certificatesOf, makeAuthority } from './authority-record.ts';
import {
  IdentityError,
  type IdentityFolder,
  pathOf,
  readPrivate,
  readText,
  writePrivate,
  writePublic,
} from './owner-only.ts';

const copyName = 'ca.sealed';
const bundleName = 'ca.pem';
const firstStart = systemActor('control plane');

/** Creates the first authority of a new control plane, only in the folder. */
export async function makeFirstAuthority(
  folder: IdentityFolder,
  making: AuthorityMaking,
): Promise<void> {
  if ((await readCopy(folder)) !== undefined) return;
  await writeAuthorities(folder, await newAuthorities(making));
}

/** A record with one new authority, which signs. */
export async function newAuthorities(making: AuthorityMaking): Promise<wire.TrustRecord> {
  const first = await makeAuthority(making, Stage.ACTIVE, firstStart, 'the first start');
  return create(wire.TrustRecordSchema, { authorities: [first], generation: 1n });
}

/** The copy; undefined when there is none. Throws `IdentityError`. */
export async function readCopy(folder: IdentityFolder): Promise<wire.TrustRecord | undefined> {
  const text = await readPrivate(folder, copyName);
  if (text === undefined) return undefined;
  try {
    const record = fromBinary(wire.TrustRecordSchema, Buffer.from(text.trim(), 'base64'));
    if (record.authorities.length > 0) return record;
  } catch {
    // The error below says so.
  }
  throw new IdentityError(
    `${pathOf(folder, copyName)} is damaged. Restore it from its backup, or remove it if the ` +
      'store has not been lost: the store has the same.',
  );
}

/** Writes the copy and the operators' file, where they differ from the present ones. */
export async function writeAuthorities(
  folder: IdentityFolder,
  record: wire.TrustRecord,
): Promise<void> {
  const copy = `${Buffer.from(toBinary(wire.TrustRecordSchema, record)).toString('base64')}\n`;
  if ((await readPrivate(folder, copyName)) !== copy) await writePrivate(folder, copyName, copy);
  const bundle = certificatesOf(record).join('');
  if ((await readText(folder, bundleName)) !== bundle) {
    await writePublic(folder, bundleName, bundle);
  }
}
