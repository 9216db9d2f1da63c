/**
 * The identity of a control plane: created in files at its first start, and read at every later
 * one.
 *
 *     ca.sealed  ca.pem       the certificate authorities, see authority-files.ts
 *     server.key  server.pem  both ports; server.pem is renewed at half life
 *     erasure.key  trust.pem  signs erasure certificates; trust.pem verifies them
 *     secrets.key             seals secrets, unless the configuration says where that key is
 *     admin.token             written once, for the person who starts us; may be moved away
 *     admin-token.sha256      the hash that verifies the token
 *     complete                everything above exists
 *
 * Invariants:
 * 1. Once `complete` exists, no file is created again: a lost key is a reason not to start, because
 *    a new one would silently orphan agents, credentials or certificates. (server.pem and trust.pem
 *    follow from other files and are the exception.)
 * 2. An interrupted first start continues where it stopped.
 */
import { createPublicKey } from 'node:crypto';
import type { Clock, Disk, Log, Random } from '@rackwright/platform';
import {
  createSecrets,
  formatKey,
  type KeySource,
  ownerOnlyFile,
  type Secrets,
  secretsKeyBytes,
} from '../secrets/index.ts';
import { hashAdminToken, makeAdminToken } from './admin-token.ts';
import type { Authorities } from './authorities.ts';
import { generatePrivateKeyPem, type Issuer } from './authority.ts';
import { makeFirstAuthority } from './authority-files.ts';
import {
  IdentityError,
  type IdentityFolder,
  openFolder,
  pathOf,
  readPrivate,
  readText,
  writePrivate,
  writePublic,
} from './owner-only.ts';

export interface IdentityOptions {
  /** Creates a new first token: the old one is no longer valid. */
  readonly newAdminToken?: boolean;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Folder of the identity's files, absolute. */
  readonly folder: string;
  /** Life of a new certificate authority, milliseconds. */
  readonly caLifetimeMs: number;
  /** The source of secrets keys; without it, a file in the folder. */
  readonly secretsKeySource?: KeySource;
}

/** The part that only the folder has. */
export interface OwnIdentity {
  readonly folder: IdentityFolder;
  readonly serverKeyPem: string;
  /** The key that signs erasure certificates, and the one that verifies them, both PEM. */
  readonly erasure: { readonly privateKeyPem: string; readonly publicKeyPem: string };
  readonly secrets: Secrets;
  readonly secretsKeySource: KeySource;
  readonly adminTokenSha256: string;
  /** True until `complete` has been called once: the store must then be empty, too. */
  readonly isNew: boolean;
  /** Ends the first start: from now on no file is created again (invariant 1). */
  complete(): Promise<void>;
}

/**
 * The parts from the folder and the store together; the authorities' part is read on each access.
 */
export interface Identity extends OwnIdentity {
  readonly authorities: Authorities;
  /** PEM of every trusted CA certificate. */
  readonly caCertificatePem: string;
  /** SHA-256 of the signing CA's certificate (DER), lower-case hex, for join tokens. */
  readonly caSha256: string;
  readonly issuer: Issuer;
  /** Life of an agent's certificate, milliseconds. */
  readonly agentCertificateMs: number;
}

/** Both parts of the identity as one. */
export function withAuthorities(own: OwnIdentity, authorities: Authorities): Identity {
  return {
    ...own,
    authorities,
    agentCertificateMs: authorities.timing.agentCertificateMs,
    get caCertificatePem() {
      return authorities.now.certificates.join('');
    },
    get caSha256() {
      return authorities.now.caSha256;
    },
    get issuer() {
      return authorities.now.issuer;
    },
  };
}

const completeName = 'complete';

/** Opens the folder, and creates its files at the first start. Throws `IdentityError`. */
export async function openIdentity(options: IdentityOptions): Promise<OwnIdentity> {
  const folder = await openFolder(options.disk, options.folder);
  const isNew = (await readText(folder, completeName)) === undefined;
  const made: Making = { folder, isNew };
  const erasure = await openErasureKeys(made);
  const secretsKeySource = options.secretsKeySource ?? (await ownSecretsKey(made, options.random));
  const secrets = createSecrets(await secretsKeySource.read(), options.random);
  if (isNew) await makeFirstAuthority(folder, { ...options, sealer: secrets });
  const adminTokenSha256 = await openAdminToken(made, options);
  return {
    folder,
    serverKeyPem: await keyOrNew(made, 'server.key'),
    erasure,
    secrets,
    secretsKeySource,
    adminTokenSha256,
    isNew,
    complete: () => writePublic(folder, completeName, 'This identity is complete.\n'),
  };
}

interface Making {
  readonly folder: IdentityFolder;
  readonly isNew: boolean;
}

async function openErasureKeys(made: Making): Promise<Identity['erasure']> {
  const privateKeyPem = await keyOrNew(made, 'erasure.key');
  const publicKeyPem = createPublicKey(privateKeyPem)
    .export({ type: 'spki', format: 'pem' })
    .toString();
  if ((await readText(made.folder, 'trust.pem')) !== publicKeyPem) {
    await writePublic(made.folder, 'trust.pem', publicKeyPem);
  }
  return { privateKeyPem, publicKeyPem };
}

async function ownSecretsKey(made: Making, random: Random): Promise<KeySource> {
  const name = 'secrets.key';
  await privateOrNew(made, name, () => formatKey(random.bytes(secretsKeyBytes)));
  return ownerOnlyFile(made.folder.disk, pathOf(made.folder, name));
}

async function openAdminToken(
  made: Making,
  { random, log, newAdminToken = false }: IdentityOptions,
): Promise<string> {
  const known = await readPrivate(made.folder, 'admin-token.sha256');
  if (known !== undefined && !newAdminToken) return known.trim();
  if (!made.isNew && !newAdminToken) throw missing(made.folder, 'admin-token.sha256');
  // The token first: after a crash in between, both the file and its hash are written again.
  const token = makeAdminToken(random);
  await writePrivate(made.folder, 'admin.token', `${token}\n`);
  await writePrivate(made.folder, 'admin-token.sha256', `${hashAdminToken(token)}\n`);
  log.info({ file: pathOf(made.folder, 'admin.token') }, 'the admin token is in this file');
  return hashAdminToken(token);
}

function keyOrNew(made: Making, name: string): Promise<string> {
  return privateOrNew(made, name, generatePrivateKeyPem);
}

async function privateOrNew(made: Making, name: string, fresh: () => string): Promise<string> {
  const found = await readPrivate(made.folder, name);
  if (found !== undefined) return found;
  if (!made.isNew) throw missing(made.folder, name);
  const text = fresh();
  await writePrivate(made.folder, name, text);
  return text;
}

function missing(folder: IdentityFolder, name: string): IdentityError {
  return new IdentityError(
    `${pathOf(folder, name)} is missing. Restore it from its backup: a new one would not fit ` +
      'the agents, credentials and certificates that exist.',
  );
}
