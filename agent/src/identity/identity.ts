/**
 * Who this agent is: its key, its certificate, and whom it believes.
 *
 * 1. The key is durable before it is shown to the control plane: a lost reply or a crash burns no
 *    token, the same key asks again.
 * 2. Identity is one file, replaced whole: there is no torn state.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import type { Disk } from '@rackwright/platform';

export interface AgentIdentity {
  readonly privateKeyPem: string;
  readonly certificatePem: string;
  readonly caCertificatePem: string;
  /** "racks/RACK" */
  readonly rack: string;
  /** "host:port" where certificates are issued. */
  readonly enrolmentAddress: string;
  /** "host:port" of the session. */
  readonly agentEndpoint: string;
  /** By this machine's wall clock, milliseconds. */
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** What the control plane's clock was ahead of ours when the certificate was issued. */
  readonly clockOffsetMs?: number;
}

export interface AgentKey {
  readonly privateKey: KeyObject;
  readonly privateKeyPem: string;
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
}

const ownerOnly = 0o600;
const ownerOnlyFolder = 0o700;

/** The files of one agent. */
export class IdentityFiles {
  readonly #disk: Disk;
  readonly #folder: string;

  constructor(disk: Disk, stateFolder: string) {
    this.#disk = disk;
    this.#folder = stateFolder;
  }

  /** The agent's key; made when there is none (invariant 1). */
  async key(): Promise<AgentKey> {
    await this.#disk.makeFolder(this.#folder, ownerOnlyFolder);
    const stored = await this.#read('agent-key.pem');
    return stored === undefined ? this.#makeKey() : readKey(stored);
  }

  async #makeKey(): Promise<AgentKey> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await this.#write('agent-key.pem', pem);
    return readKey(pem);
  }

  /** Another key, for an agent whose key may not come back; the old one is gone. */
  async newKey(): Promise<AgentKey> {
    await this.#disk.makeFolder(this.#folder, ownerOnlyFolder);
    return this.#makeKey();
  }

  /** Undefined before the first join. */
  async load(): Promise<AgentIdentity | undefined> {
    const text = await this.#read('identity.json');
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as AgentIdentity;
    } catch (cause) {
      const remedy = 'join again with a new token';
      throw new Error(`${this.#folder}/identity.json is damaged: ${remedy}`, { cause });
    }
  }

  async save(identity: AgentIdentity): Promise<void> {
    await this.#write('identity.json', `${JSON.stringify(identity, undefined, 2)}\n`);
  }

  async #read(name: string): Promise<string | undefined> {
    const bytes = await this.#disk.read(`${this.#folder}/${name}`);
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  }

  #write(name: string, text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    return this.#disk.writeAtomic(`${this.#folder}/${name}`, bytes, ownerOnly);
  }
}

export function readKey(privateKeyPem: string): AgentKey {
  const privateKey = createPrivateKey(privateKeyPem);
  const publicKeyDer = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return { privateKey, privateKeyPem, publicKeyDer };
}
