/**
 * Decides which identity files a backup contains as they are, sealed, or not at all. Where the
 * secrets key is kept elsewhere, a lost backup opens nothing: its private keys are sealed in the
 * same way as `ca.sealed`. The program that has the key seals them: the running control plane, or
 * else the backup program.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { Disk, LargeFiles } from '@rackwright/platform';
import type { Secrets } from '../secrets/index.ts';

const sealedSuffix = '.sealed';
/** The sealing keys: a backup contains them only when they are kept next to the sealed data. */
const secretsKeyFile = 'secrets.key';

/** How a backup contains a file of the identity. `ca.sealed` is already sealed. */
export function handlingOf(name: string): 'asItIs' | 'sealed' | 'leftOut' {
  if (name.endsWith('.token')) return 'leftOut';
  return name.endsWith('.key') && name !== secretsKeyFile ? 'sealed' : 'asItIs';
}

/** Keys of an identity by the names of their files, sealed, as text. */
export interface SealedKeys {
  readonly keyId: string;
  readonly files: Readonly<Record<string, string>>;
}

/** Seals the private keys of this folder. Throws `SecretError`. */
export async function sealKeys(
  identity: string,
  { disk, files }: { readonly disk: Disk; readonly files: LargeFiles },
  secrets: Pick<Secrets, 'sealBytes' | 'keyId'>,
): Promise<SealedKeys> {
  const sealed: Record<string, string> = {};
  for (const { name } of await files.list(identity)) {
    if (handlingOf(name) !== 'sealed') continue;
    const bytes = await disk.read(`${identity}/${name}`);
    if (bytes === undefined) continue;
    const value = secrets.sealBytes(contextOf(name), bytes);
    sealed[name] = Buffer.from(toBinary(wire.SealedValueSchema, value)).toString('base64');
  }
  return { keyId: secrets.keyId, files: sealed };
}

/** The name of a sealed file. */
export function sealedName(name: string): string {
  return `${name}${sealedSuffix}`;
}

/** The name of the file sealed in it; undefined: it is not a sealed file. */
export function nameInside(name: string): string | undefined {
  return name.endsWith(`.key${sealedSuffix}`) ? name.slice(0, -sealedSuffix.length) : undefined;
}

/** The opened file. Throws `SecretError`, or an error of its format. */
export function openKey(
  secrets: Pick<Secrets, 'openBytes'>,
  name: string,
  sealed: Uint8Array,
): Uint8Array {
  const text = Buffer.from(sealed).toString('latin1');
  const value = fromBinary(wire.SealedValueSchema, Buffer.from(text, 'base64'));
  return secrets.openBytes(contextOf(name), value);
}

/** The name is part of the context: a renamed file does not open. */
function contextOf(name: string): string {
  return `backup of identity/${name}`;
}
