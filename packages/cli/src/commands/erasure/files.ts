/** Files of certificates: FILE.json with FILE.json.sig beside it, and trust.pem. */
import type { Certificate } from '@rackwright/erasure';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';

/** The flags of every command that verifies signed files. */
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
  io: CommandIo,
  path: string,
  signaturePath?: string,
): Promise<Certificate> {
  const statement = await mustRead(io, path);
  return { statement, signature: await mustRead(io, signaturePath ?? `${path}.sig`) };
}

/** All trusted keys, of one file or several. */
export async function readTrust(io: CommandIo, paths: readonly string[]): Promise<string> {
  const keys = await Promise.all(paths.map((path) => mustRead(io, path)));
  return keys.map((bytes) => new TextDecoder().decode(bytes)).join('\n');
}

async function mustRead(io: CommandIo, path: string): Promise<Uint8Array> {
  const bytes = await io.readFile(path);
  if (bytes === undefined) throw new UsageError(`${path} does not exist`);
  return bytes;
}
