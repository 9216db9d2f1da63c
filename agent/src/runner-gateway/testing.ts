import { generateKeyPairSync } from 'node:crypto';
import type { EvidenceSigner } from './evidence.ts';

/** For tests: a fresh agent key. */
export function testSigner(): EvidenceSigner {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, publicKeyDer: publicKey.export({ type: 'spki', format: 'der' }) };
}
