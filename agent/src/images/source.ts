/** The source of a host's image, from the fields of an order. */
import type { agent } from '@rackwright/messages';
import { type Mirror, parseDigest, type RegistryCredential } from '@rackwright/oci';
import type { FailedAttempt } from '@rackwright/results';
import type { FromRegistry, FromWeb, WantedHostImage } from './host-images.ts';

/** The architecture of machines, as images name it. */
export type ImageArchitecture = WantedHostImage['architecture'];

/** Undefined for an architecture that images are not made for. */
export function architectureNamed(name: string): ImageArchitecture | undefined {
  return name === 'amd64' || name === 'arm64' ? name : undefined;
}

/** The secret of this name in this version or a newer one; undefined: anonymous. */
export type CredentialOf = (
  name: string,
  version: bigint,
) => Promise<RegistryCredential | undefined>;

/** Rejects as `credential` does. */
export async function wantedImage(
  image: agent.HostImage,
  architecture: ImageArchitecture,
  needs: WantedHostImage['needs'],
  credentialBy: CredentialOf,
): Promise<WantedHostImage | FailedAttempt> {
  const { reference } = image;
  const isWeb = /^https?:\/\//.test(reference);
  const from = isWeb ? await fromWeb(image, credentialBy) : await fromRegistry(image, credentialBy);
  return 'type' in from ? from : { from, architecture, needs };
}

async function fromRegistry(
  image: agent.HostImage,
  credentialBy: CredentialOf,
): Promise<FromRegistry> {
  const { reference, plainHttp } = image;
  const internal = image.internalAddresses;
  const mirrors: Mirror[] = [];
  for (const mirror of image.mirrors) {
    const { registry, prefix } = mirror;
    const { plainHttp: isPlain } = mirror;
    const credential = await credentialOf(mirror, credentialBy);
    mirrors.push({
      registry,
      prefix,
      plainHttp: isPlain,
      credential,
      internal,
      ...registryParts(mirror),
    });
  }
  const credential = await credentialOf(image, credentialBy);
  const access = { plainHttp, credential, internal, ...registryParts(image) };
  return { kind: 'registry', reference, mirrors, ...access };
}

const digestMark = '#sha256=';

async function fromWeb(
  image: agent.HostImage,
  credentialBy: CredentialOf,
): Promise<FromWeb | FailedAttempt> {
  const { reference } = image;
  const mark = reference.lastIndexOf(digestMark);
  const url = reference.slice(0, Math.max(mark, 0));
  const digest = parseDigest(`sha256:${reference.slice(mark + digestMark.length)}`);
  if (mark < 0 || digest === undefined || !URL.canParse(url)) {
    const right = `a URL that ends in "${digestMark}" and 64 hex digits`;
    const message = `the image has to be ${right}, unlike "${reference}"`;
    return { kind: 'failed', type: 'invalidArgument', message };
  }
  const credential = await credentialOf(image, credentialBy);
  const internal = image.internalAddresses;
  return { kind: 'web', url, digest, credential, internal, ...trusted(image.caPem) };
}

/** Fields that an order may leave out. */
function registryParts({
  caPem,
  tokenService,
}: Pick<agent.HostImageMirror, 'caPem' | 'tokenService'>) {
  return { ...trusted(caPem), ...(tokenService === '' ? {} : { tokenService }) };
}

function trusted(caPem: string): { readonly caPem?: string } {
  return caPem === '' ? {} : { caPem };
}

async function credentialOf(
  { credential, credentialVersion }: Pick<agent.HostImage, 'credential' | 'credentialVersion'>,
  credentialBy: CredentialOf,
): Promise<RegistryCredential | undefined> {
  if (credential === '') return undefined;
  const found = await credentialBy(credential, credentialVersion);
  return found && { username: found.username, password: found.password };
}
