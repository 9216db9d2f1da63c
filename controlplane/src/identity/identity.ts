/**
 * All that makes a control plane this one: made at its first start, in files, and read at every
 * later one.
 *
 *     ca.key  ca.pem          the certificate authority
 *     server.key  server.pem  both ports, renewed at half life
 *     erasure.key  trust.pem  signs erasure certificates; trust.pem is what verifies them
 *     secrets.key             seals secrets, unless the configuration says where that key is
 *     admin.token             written once, for the person who starts us; may be moved away
 *     admin-token.sha256      what the token is checked with
 *     complete                everything above exists
 *
 * Invariants:
 * 1. Nothing is ever made anew once `complete` exists: a lost key is a reason not to start, because
 *    a new one would silently orphan agents, credentials or certificates. (server.pem and trust.pem
 *    follow from other files and are the exception.)
 * 2. A first start that was interrupted goes on where it stopped.
 */
import { createPublicKey } from 'node:crypto';
import { type KeyAndChain, sha256Hex } from '@rackwright/api';
import type { Cancel, Clock, Disk, Log, Random } from '@rackwright/platform';
import {
  createSecrets,
  formatKey,
  type KeySource,
  ownerOnlyFile,
  type Secrets,
  secretsKeyBytes,
} from '../secrets/index.ts';
import { hashAdminToken, makeAdminToken } from './admin-token.ts';
import {
  generatePrivateKeyPem,
  halfLifeMs,
  type Issuer,
  makeCaCertificate,
  openIssuer,
  readCertificate,
} from './authority.ts';
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
import { freshServerCertificate } from './server-certificate.ts';

export interface IdentityOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Folder of the identity's files, absolute. */
  readonly folder: string;
  /** DNS names and IP addresses under which operators and agents reach us. */
  readonly serverNames: readonly string[];
  /** Where secrets keys come from; without it, from a file in the folder. */
  readonly secretsKeySource?: KeySource;
}

export interface Identity {
  /** PEM of the CA certificate. */
  readonly caCertificatePem: string;
  /** SHA-256 of the CA certificate (DER), lower-case hex: what join tokens carry. */
  readonly caSha256: string;
  readonly issuer: Issuer;
  /** Key that signs erasure certificates, and what verifies them, both PEM. */
  readonly erasure: { readonly privateKeyPem: string; readonly publicKeyPem: string };
  readonly secrets: Secrets;
  readonly secretsKeySource: KeySource;
  readonly adminTokenSha256: string;
  /** The certificate for both ports, as of the start. */
  readonly server: KeyAndChain;
  /** True until `complete` has been called once: the store must then be empty, too. */
  readonly isNew: boolean;
  /** Ends the first start: from now on nothing is ever made anew (invariant 1). */
  complete(): Promise<void>;
  /** Renews the server's certificate at half life for as long as it is not cancelled. */
  keepServerFresh(onRenewed: (next: KeyAndChain) => void): Cancel;
}

const completeName = 'complete';
/** Pause before another try when a renewal failed (disk full), milliseconds. */
const renewalRetryMs = 10 * 60_000;

/** Opens the identity, making it at the first start. Throws `IdentityError`. */
export async function openIdentity(options: IdentityOptions): Promise<Identity> {
  const folder = await openFolder(options.disk, options.folder);
  const isNew = (await readText(folder, completeName)) === undefined;
  const made: Making = { folder, isNew };
  const issuer = await openAuthority(made, options);
  const caCertificatePem = `${issuer.caCertificate.toString('pem')}\n`;
  const erasure = await openErasureKeys(made);
  const secretsKeySource = options.secretsKeySource ?? (await ownSecretsKey(made, options.random));
  const secrets = createSecrets(await secretsKeySource.read(), options.random);
  const adminTokenSha256 = await openAdminToken(made, options);
  const serverKeyPem = await keyOrNew(made, 'server.key');
  const names = options.serverNames;
  const serverMaking = { folder, issuer, privateKeyPem: serverKeyPem, names };
  const first = await freshServerCertificate(serverMaking, options.clock.nowMs());
  return {
    caCertificatePem,
    caSha256: sha256Hex(new Uint8Array(issuer.caCertificate.rawData)),
    issuer,
    erasure,
    secrets,
    secretsKeySource,
    adminTokenSha256,
    server: first.tls,
    isNew,
    complete: () => writePublic(folder, completeName, 'This identity is complete.\n'),
    keepServerFresh: (onRenewed) =>
      renewAtHalfLife(options, halfLifeMs(first.certificate), async () => {
        const next = await freshServerCertificate(serverMaking, options.clock.nowMs());
        onRenewed(next.tls);
        return halfLifeMs(next.certificate);
      }),
  };
}

interface Making {
  readonly folder: IdentityFolder;
  readonly isNew: boolean;
}

async function openAuthority(made: Making, { clock, random }: IdentityOptions): Promise<Issuer> {
  const keyPem = await keyOrNew(made, 'ca.key');
  const found = await readText(made.folder, 'ca.pem');
  if (found === undefined && !made.isNew) throw missing(made.folder, 'ca.pem');
  const certificate =
    found === undefined ? await makeCaCertificate(keyPem, clock, random) : readCertificate(found);
  if (found === undefined) {
    await writePublic(made.folder, 'ca.pem', `${certificate.toString('pem')}\n`);
  }
  if (!sameKey(keyPem, certificate.publicKey.toString('pem'))) {
    throw new IdentityError(
      `${pathOf(made.folder, 'ca.key')} and ca.pem do not belong together. ` +
        'Restore both from the same backup.',
    );
  }
  return openIssuer(keyPem, certificate, clock, random);
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

async function openAdminToken(made: Making, { random, log }: IdentityOptions): Promise<string> {
  const known = await readPrivate(made.folder, 'admin-token.sha256');
  if (known !== undefined) return known.trim();
  if (!made.isNew) throw missing(made.folder, 'admin-token.sha256');
  // The token first: after a crash in between, the file is written again together with its hash.
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

function sameKey(privateKeyPem: string, publicKeyPem: string): boolean {
  return createPublicKey(privateKeyPem).equals(createPublicKey(publicKeyPem));
}

function renewAtHalfLife(
  { clock, log }: IdentityOptions,
  firstMs: number,
  renew: () => Promise<number>,
): Cancel {
  let cancelled = false;
  let cancelTimer: Cancel = () => undefined;
  const arm = (atMs: number): void => {
    if (cancelled) return;
    cancelTimer = clock.after(Math.max(0, atMs - clock.nowMs()), () => {
      renew().then(arm, (error: unknown) => {
        log.error({ cause: String(error) }, 'the server certificate could not be renewed');
        arm(clock.nowMs() + renewalRetryMs);
      });
    });
  };
  arm(firstMs);
  return () => {
    cancelled = true;
    cancelTimer();
  };
}
