/**
 * The agent's boot certificate: made by itself, once, and kept on the identity disk. Runners
 * recognize it by its SHA-256 on their kernel command line. Its dates are not checked, because a
 * ramdisk's clock may be wrong.
 */
import { X509Certificate } from 'node:crypto';
import { sha256Hex } from '@rackwright/messages';
import type { Disk, Random } from '@rackwright/platform';
import type { BootCertificate } from './new-certificate.ts';

export type { BootCertificate };

const ownerOnly = 0o600;

/** Reads the certificate from `path`, or makes it. A damaged file is an error, not a new key. */
export async function loadBootCertificate(
  disk: Disk,
  random: Random,
  path: string,
): Promise<BootCertificate> {
  const bytes = await disk.read(path);
  if (bytes !== undefined) return parseStored(new TextDecoder().decode(bytes), path);
  // Only an agent's first start loads the code that makes one.
  const { makeCertificate } = await import('./new-certificate.ts');
  const made = await makeCertificate(random);
  const { privateKeyPem, certificatePem } = made;
  const text = `${JSON.stringify({ privateKeyPem, certificatePem })}\n`;
  await disk.writeAtomic(path, new TextEncoder().encode(text), ownerOnly);
  return made;
}

function parseStored(text: string, path: string): BootCertificate {
  try {
    const { privateKeyPem, certificatePem } = JSON.parse(text);
    const { raw } = new X509Certificate(certificatePem);
    return { privateKeyPem, certificatePem, fingerprint: sha256Hex(raw) };
  } catch (cause) {
    const remedy = 'remove it to make a new one; runners that are up must then be booted again';
    throw new Error(`${path} holds no boot certificate: ${remedy}`, { cause });
  }
}
