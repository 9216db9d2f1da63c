/**
 * Certificate authorities in the identity's folder.
 *
 *     ca.pem      every certificate that is believed: what operators' CA files are copies of
 *     ca.sealed   a copy of the authorities' record, keys sealed, for a store that was lost
 *     ca.key      of an older release: the one authority's key. It is taken over once, then removed
 */
import { createPublicKey } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Authority_Stage as Stage, sha256Hex, store as wire } from '@rackwright/messages';
import { readCertificate } from './authority.ts';
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
const oldKeyName = 'ca.key';
const bundleName = 'ca.pem';
const systemActor = 'system:control plane';

/** Makes the first authority of a new control plane, in the folder only. */
export async function makeFirstAuthority(
  folder: IdentityFolder,
  making: AuthorityMaking,
): Promise<void> {
  if ((await readCopy(folder)) !== undefined) return;
  if ((await readPrivate(folder, oldKeyName)) !== undefined) return;
  await writeAuthorities(folder, await newAuthorities(making));
}

/** A record with one new authority, which signs. */
export async function newAuthorities(making: AuthorityMaking): Promise<wire.TrustRecord> {
  const first = await makeAuthority(making, Stage.ACTIVE, systemActor, 'the first start');
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
    // Said below.
  }
  throw new IdentityError(
    `${pathOf(folder, copyName)} is damaged. Restore it from its backup, or remove it if the ` +
      'store has not been lost: the store has the same.',
  );
}

/** Writes the copy and what operators believe, where they differ from what is there. */
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

/** The authority that an older release kept in two files; undefined when there is none. */
export async function readOldAuthority(
  folder: IdentityFolder,
  making: AuthorityMaking,
): Promise<wire.TrustRecord | undefined> {
  const keyPem = await readPrivate(folder, oldKeyName);
  if (keyPem === undefined) return undefined;
  const found = await readText(folder, bundleName);
  if (found === undefined) {
    throw new IdentityError(
      `${pathOf(folder, bundleName)} is missing beside ${oldKeyName}. Restore it from its backup.`,
    );
  }
  const certificate = readCertificate(found);
  const publicKey = createPublicKey(certificate.publicKey.toString('pem'));
  if (!createPublicKey(keyPem).equals(publicKey)) {
    throw new IdentityError(
      `${pathOf(folder, oldKeyName)} and ${bundleName} do not belong together. ` +
        'Restore both from the same backup.',
    );
  }
  const reason = 'taken over from ca.key and ca.pem';
  const given = { keyPem, certificate };
  const one = await makeAuthority(making, Stage.ACTIVE, systemActor, reason, given);
  return create(wire.TrustRecordSchema, { authorities: [one], generation: 1n });
}

/** Removes the key of an older release, which is in the record by now. */
export async function removeOldKey(
  folder: IdentityFolder,
  record: wire.TrustRecord,
): Promise<boolean> {
  if ((await readPrivate(folder, oldKeyName)) === undefined) return false;
  const found = await readText(folder, bundleName);
  const known = record.authorities.map(({ authority }) => authority?.sha256 ?? '');
  const own = found === undefined ? '' : sha256Hex(new Uint8Array(readCertificate(found).rawData));
  if (!known.includes(own)) {
    throw new IdentityError(
      `${folder.path} holds another certificate authority (SHA-256 ${own || 'unknown'}) than the ` +
        `store (${known.join(', ')}): it belongs to another control plane. Give this one the ` +
        'identity folder of the others that share the store.',
    );
  }
  await folder.disk.remove(pathOf(folder, oldKeyName));
  return true;
}
