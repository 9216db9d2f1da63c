/**
 * The runner's own key: made in the ramdisk, kept in its state folder (/run), proved to the agent
 * by a signature over the agent's nonce. It dies with the boot.
 */

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { BootId } from '@rackwright/messages';
import type { Disk } from '@rackwright/platform';

export interface RunnerKey {
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
  /** ECDSA-SHA256 (DER) over the label of a runner's Hello, the agent's nonce and the token. */
  proveHello(nonce: Uint8Array, bootToken: string): Uint8Array;
}

const helloLabel = 'rackwright-runner-hello\0';
const ownerOnly = 0o600;

/** The key of this boot: read from `path`, or made; one of another boot is replaced. */
export async function loadRunnerKey(disk: Disk, path: string, bootId: BootId): Promise<RunnerKey> {
  const stored = parseStored(await disk.read(path));
  if (stored?.bootId === bootId) return keyOf(stored.privateKeyPem);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const text = JSON.stringify({ bootId, privateKeyPem });
  await disk.writeAtomic(path, new TextEncoder().encode(text), ownerOnly);
  return keyOf(privateKeyPem);
}

function parseStored(
  bytes: Uint8Array | undefined,
): { bootId: BootId; privateKeyPem: string } | undefined {
  return bytes === undefined ? undefined : JSON.parse(new TextDecoder().decode(bytes));
}

function keyOf(privateKeyPem: string): RunnerKey {
  const privateKey = createPrivateKey(privateKeyPem);
  const publicKeyDer = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  return {
    publicKeyDer: new Uint8Array(publicKeyDer),
    proveHello: (nonce, bootToken) => {
      const signed = Buffer.concat([Buffer.from(helloLabel), nonce, Buffer.from(bootToken)]);
      return new Uint8Array(sign('sha256', signed, privateKey));
    },
  };
}
