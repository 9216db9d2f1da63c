import { generateKeyPairSync } from 'node:crypto';
import type { Log } from '@rackwright/platform';
import type { EvidenceSigner } from './evidence.ts';

/** For tests: a log that keeps nothing. */
export const quietLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => quietLog,
};

/** For tests: a fresh agent key. */
export function testSigner(): EvidenceSigner {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, publicKeyDer: publicKey.export({ type: 'spki', format: 'der' }) };
}
