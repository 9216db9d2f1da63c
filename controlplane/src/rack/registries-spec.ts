/** Validation of the fleet's settings for image registries. */
import { X509Certificate } from 'node:crypto';
import type { ImageMirror, ImageRegistry } from '@rackwright/messages';
import { isRegistry, isRepository, mirrorsMax } from '@rackwright/oci';
import { nameProblem } from '../call/names.ts';
import { quote, type Violations } from '../call/violations.ts';

const registriesMax = 32;
/** Each is read at every reconcile of a host. */
const credentialsMax = 32;
/**
 * For one registry with its mirrors: it is part of hosts' orders, and is sent in one message for
 * all hosts of a rack that boot over the network.
 */
const caBytesOfOneMax = 16 * 1024;
/** For all: the fleet is one bounded record. */
const caBytesOfAllMax = 96 * 1024;
const pemForm = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** Adds every violation. */
export function checkRegistries(
  path: string,
  registries: readonly ImageRegistry[],
  violations: Violations,
): void {
  if (registries.length > registriesMax) {
    violations.add(path, `has ${registries.length}; at most ${registriesMax} are kept`);
    return;
  }
  const seen = new Set<string>();
  registries.forEach((registry, index) => {
    const at = `${path}[${index}]`;
    checkSource(at, registry, violations);
    if (seen.has(registry.registry)) {
      violations.add(`${at}.registry`, `repeats ${quote(registry.registry)}`);
    }
    seen.add(registry.registry);
    checkMirrors(`${at}.mirrors`, registry, violations);
  });
  const bytes = registries.reduce((sum, registry) => sum + caBytes(registry), 0);
  if (bytes > caBytesOfAllMax) {
    violations.add(path, `has ${bytes} bytes of ca_pem; at most ${caBytesOfAllMax} are kept`);
  }
  const sources = registries.flatMap((registry) => [registry, ...registry.mirrors]);
  const names = new Set(sources.map(({ credential }) => credential).filter((name) => name !== ''));
  if (names.size > credentialsMax) {
    violations.add(path, `names ${names.size} credentials; at most ${credentialsMax} are kept`);
  }
}

function checkMirrors(path: string, registry: ImageRegistry, violations: Violations): void {
  const { mirrors } = registry;
  if (mirrors.length > mirrorsMax) {
    violations.add(path, `has ${mirrors.length} mirrors; at most ${mirrorsMax} are asked`);
    return;
  }
  mirrors.forEach((mirror, index) => {
    const at = `${path}[${index}]`;
    checkSource(at, mirror, violations);
    if (mirror.prefix !== '' && !isRepository(mirror.prefix)) {
      const form = 'lower-case parts joined by "/", as in "docker.io", or empty';
      violations.add(`${at}.prefix`, `is ${quote(mirror.prefix)}; it must be ${form}`);
    }
    if (mirror.registry === registry.registry && mirror.prefix === '') {
      violations.add(`${at}.registry`, 'is the registry itself, which is asked anyway');
    }
  });
  const bytes = caBytes(registry);
  if (bytes > caBytesOfOneMax) {
    const whose = `${quote(registry.registry)} and its mirrors have ${bytes} bytes of ca_pem`;
    violations.add(path, `${whose}; at most ${caBytesOfOneMax} are kept`);
  }
}

function checkSource(
  path: string,
  { registry, credential, plainHttp, caPem, tokenService }: ImageRegistry | ImageMirror,
  violations: Violations,
): void {
  if (!isRegistry(registry)) {
    const form = '"registry.example.org", "localhost" or "host:port"';
    violations.add(`${path}.registry`, `is ${quote(registry)}; it must have the form ${form}`);
  }
  if (credential !== '') {
    violations.addIf(`${path}.credential`, nameProblem('credentials', credential));
  }
  if (tokenService !== '' && !isRegistry(tokenService)) {
    const form = '"auth.example.org" or "host:port"';
    violations.add(
      `${path}.token_service`,
      `is ${quote(tokenService)}; it must have the form ${form}`,
    );
  }
  if (caPem === '') return;
  if (plainHttp) {
    violations.add(
      `${path}.ca_pem`,
      'is given, and plain HTTP shows no certificate; leave one out',
    );
  }
  violations.addIf(`${path}.ca_pem`, pemProblem(caPem));
}

function pemProblem(text: string): string | undefined {
  const found = text.match(pemForm) ?? [];
  if (found.length === 0) return 'must be certificates in PEM, "-----BEGIN CERTIFICATE-----…"';
  if (text.replaceAll(pemForm, '').includes('-----BEGIN')) {
    return 'has something beside certificates; give the certificates of authorities alone';
  }
  for (const [index, pem] of found.entries()) {
    try {
      if (new X509Certificate(pem).raw.length > 0) continue;
      return 'has an empty certificate';
    } catch {
      // The message of OpenSSL helps no person.
      return `has a certificate that cannot be read, the ${index + 1}. of ${found.length}`;
    }
  }
  return undefined;
}

function caBytes({ caPem, mirrors }: ImageRegistry): number {
  return mirrors.reduce((sum, mirror) => sum + mirror.caPem.length, caPem.length);
}
