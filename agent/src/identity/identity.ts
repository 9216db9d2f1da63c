/**
 * The identity of this agent: its key, its certificate, and the authorities that it trusts.
 *
 * 1. The key is durable before it is shown to the control plane. So a lost reply or a crash wastes
 *    no token: the agent asks again with the same key.
 * 2. The identity is one file that is replaced atomically. Its key is the agent's. Before the first
 *    join the file of the key alone counts.
 * 3. A key that takes the place of another one is a file of its own until it has its certificate:
 *    what the control plane refuses changes nothing here.
 * 4. A file that others can read or own is not used: its key may be theirs.
 */

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import type { RackName } from '@rackwright/messages';
import type { Disk, FileStat } from '@rackwright/platform';

export interface AgentIdentity {
  readonly privateKeyPem: string;
  readonly certificatePem: string;
  readonly caCertificatePem: string;
  /** "racks/RACK" */
  readonly rack: RackName;
  /** "host:port" where certificates are issued. */
  readonly enrolmentAddress: string;
  /** "host:port" of the session. */
  readonly agentEndpoint: string;
  /** By this machine's wall clock, milliseconds. */
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** How far the control plane's clock was ahead of ours when the certificate was issued. */
  readonly clockOffsetMs?: number;
}

export interface AgentKeyPair {
  readonly privateKey: KeyObject;
  readonly privateKeyPem: string;
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
}

const ownerOnly = 0o600;
const ownerOnlyFolder = 0o700;
/** Any of these bits lets others in. */
const othersBits = 0o077;

const identityFile = 'identity.json';
const keyFile = 'agent-key.pem';
const newKeyFile = 'agent-key-new.pem';

/** The files of one agent. */
export class IdentityFiles {
  readonly #disk: Disk;
  readonly #folder: string;

  constructor(disk: Disk, stateFolder: string) {
    this.#disk = disk;
    this.#folder = stateFolder;
  }

  /** The agent's key; made when there is none (invariants 1 and 2). */
  async key(): Promise<AgentKeyPair> {
    await this.#disk.makeFolder(this.#folder, ownerOnlyFolder);
    const text = await this.#read(identityFile);
    const identity = text === undefined ? undefined : readIdentity(text);
    if (identity !== undefined) return readKey(identity.privateKeyPem);
    return await this.#storedKey(keyFile);
  }

  /** Another key, for an agent whose key is no longer accepted; the old one stays (invariant 3). */
  async newKey(): Promise<AgentKeyPair> {
    await this.#disk.makeFolder(this.#folder, ownerOnlyFolder);
    return await this.#storedKey(newKeyFile);
  }

  /** The identity of the new key is saved: there is no other key any more. */
  async adoptNewKey({ privateKeyPem }: AgentKeyPair): Promise<void> {
    await this.#write(keyFile, privateKeyPem);
    await this.dropNewKey();
  }

  /** The new key is of no use. */
  dropNewKey(): Promise<void> {
    return this.#disk.remove(`${this.#folder}/${newKeyFile}`);
  }

  async #storedKey(name: string): Promise<AgentKeyPair> {
    const stored = await this.#read(name);
    if (stored !== undefined) return readKey(stored);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await this.#write(name, pem);
    return readKey(pem);
  }

  /** Undefined before the first join. */
  async load(): Promise<AgentIdentity | undefined> {
    const text = await this.#read(identityFile);
    if (text === undefined) return undefined;
    const identity = readIdentity(text);
    if (identity !== undefined) return identity;
    const remedy = 'join again with a new token';
    throw new Error(`${this.#folder}/${identityFile} is damaged: ${remedy}`);
  }

  async save(identity: AgentIdentity): Promise<void> {
    await this.#write(identityFile, `${JSON.stringify(identity, undefined, 2)}\n`);
  }

  async #read(name: string): Promise<string | undefined> {
    const path = `${this.#folder}/${name}`;
    const found = await this.#disk.stat(path);
    if (found === undefined) return undefined;
    refuseOthers(path, found);
    const bytes = await this.#disk.read(path);
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  }

  #write(name: string, text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    return this.#disk.writeAtomic(`${this.#folder}/${name}`, bytes, ownerOnly);
  }
}

const texts = [
  'privateKeyPem',
  'certificatePem',
  'caCertificatePem',
  'rack',
  'enrolmentAddress',
  'agentEndpoint',
] as const;

/** Undefined when it is not whole. */
function readIdentity(text: string): AgentIdentity | undefined {
  try {
    const identity = JSON.parse(text) as AgentIdentity | null;
    if (identity === null) return undefined;
    const { issuedAtMs, expiresAtMs } = identity;
    if (!texts.every((name) => typeof identity[name] === 'string')) return undefined;
    if (!Number.isFinite(issuedAtMs) || !Number.isFinite(expiresAtMs)) return undefined;
    readKey(identity.privateKeyPem);
    return identity;
  } catch {
    // It is no JSON, or the key cannot be read. The caller names the file.
    return undefined;
  }
}

/** Invariant 4. Repairing it silently would hide that the key may be known. */
function refuseOthers(path: string, { mode, isOurs }: FileStat): void {
  if (!isOurs) {
    throw new Error(`${path} belongs to another user, who can read and replace its key`);
  }
  if ((mode & othersBits) === 0) return;
  const now = (mode & 0o777).toString(8);
  throw new Error(
    `${path} is open to others (mode ${now}), so its key may be known to them. If it is not, ` +
      `run: chmod 600 ${path}; else revoke the agent and join it with --new-key`,
  );
}

export function readKey(privateKeyPem: string): AgentKeyPair {
  const privateKey = createPrivateKey(privateKeyPem);
  const publicKeyDer = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return { privateKey, privateKeyPem, publicKeyDer };
}
