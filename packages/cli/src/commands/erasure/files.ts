/** Files of certificates: FILE.json with FILE.json.sig beside it, and trust.pem. */
import type { Certificate } from '@rackwright/erasure';
import { UsageError } from '../../failure.ts';
import type { World } from '../../world.ts';

/** What every command that judges signed files is told. */
export const trustFlags = {
  trust: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    brief: 'Public keys of the control plane (trust.pem)',
    placeholder: 'file',
  },
  revocationsComplete: {
    kind: 'boolean',
    default: false,
    brief: 'The files hold every revocation that there is',
  },
} as const;

export interface TrustFlags {
  readonly trust: readonly string[];
  readonly revocationsComplete: boolean;
}

/** A certificate or document with its signature. */
export async function readSigned(
  world: World,
  path: string,
  signaturePath?: string,
): Promise<Certificate> {
  const statement = await mustRead(world, path);
  return { statement, signature: await mustRead(world, signaturePath ?? `${path}.sig`) };
}

/** All trusted keys, of one file or several. */
export async function readTrust(world: World, paths: readonly string[]): Promise<string> {
  const keys = await Promise.all(paths.map((path) => mustRead(world, path)));
  return keys.map((bytes) => new TextDecoder().decode(bytes)).join('\n');
}

async function mustRead(world: World, path: string): Promise<Uint8Array> {
  const bytes = await world.readFile(path);
  if (bytes === undefined) throw new UsageError(`${path} does not exist`);
  return bytes;
}
