/** How an image of hosts is requested, by the fleet's settings for its registry. Pure. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  type CredentialName,
  type FleetSpec,
  type ImageRegistry,
} from '@rackwright/messages';
import { entriesNaming } from '@rackwright/platform';
import { idOf } from '../records/index.ts';
import { readImageName } from './name.ts';

export type HostImageResult =
  | { readonly kind: 'ok'; readonly image: agent.HostImage }
  | { readonly kind: 'refused'; readonly problem: string };

/** The fleet's settings for image sources; undefined: none. */
export type ImageSources =
  | Readonly<Partial<Pick<FleetSpec, 'registries' | 'internalAddresses'>>>
  | undefined;

/**
 * Internal addresses at which `registry` may be, by the fleet's settings: those that it lists, and
 * those in the names of the registry and its mirrors.
 */
export function internalAddressesOf(sources: ImageSources, registry: string): string[] {
  const { registries, internalAddresses = [] } = sources ?? {};
  const named = registryOf(registries, registry);
  const locations = named === undefined ? [] : [named, ...named.mirrors];
  const own = locations.flatMap((each) => entriesNaming(each.registry, each.plainHttp ? 80 : 443));
  return [...new Set([...internalAddresses, ...own])];
}

/** The fleet's settings for a registry; undefined: HTTPS, without a credential. */
export function registryOf(
  registries: readonly ImageRegistry[] | undefined,
  registry: string,
): ImageRegistry | undefined {
  return registries?.find((each) => each.registry === registry);
}

/** Credentials that the fleet names for images of hosts. */
export function credentialsOfRegistries(registries: readonly ImageRegistry[] = []): string[] {
  const names = registries.flatMap(({ credential, mirrors }) => [
    credential,
    ...mirrors.map((mirror) => mirror.credential),
  ]);
  return [...new Set(names)].filter((name) => name !== '');
}

/**
 * The image for an agent, or why it cannot be used. `versions`: of the existing credentials that
 * the fleet names.
 */
export function hostImageOf(
  reference: string,
  sources: ImageSources,
  versions: ReadonlyMap<CredentialName, bigint>,
): HostImageResult {
  const read = readImageName(reference);
  if (read.kind === 'bad') return refuse(`the image ${reference} ${read.problem}`);
  const { name } = read;
  if (name.digest === undefined) {
    return refuse(`the image ${reference} is named by a tag, and a host is told only digests`);
  }
  const access = registryOf(sources?.registries, name.registry);
  if (name.kind === 'file' && name.plainHttp && access?.plainHttp !== true) {
    return refuse(plainHttpProblem(name.registry));
  }
  const missing = credentialsOfRegistries(access === undefined ? [] : [access]).find(
    (credential) => !versions.has(credential),
  );
  if (missing !== undefined) {
    const id = idOf(missing);
    const command = `rackwright credential create ${id} --username USER`;
    const whose = `${missing}, which the fleet names for ${name.registry}`;
    return refuse(`${whose}, does not exist; create it by \`${command}\``);
  }
  const version = (credential: CredentialName) => versions.get(credential) ?? 0n;
  const { credential = '', plainHttp = false, caPem = '', mirrors = [] } = access ?? {};
  const { tokenService = '' } = access ?? {};
  const image = create(agent.HostImageSchema, {
    ...{ reference, credential, credentialVersion: version(credential), plainHttp, caPem },
    tokenService,
    internalAddresses: internalAddressesOf(sources, name.registry),
    mirrors: mirrors.map((mirror) => ({
      registry: mirror.registry,
      prefix: mirror.prefix,
      credential: mirror.credential,
      credentialVersion: version(mirror.credential),
      plainHttp: mirror.plainHttp,
      caPem: mirror.caPem,
      tokenService: mirror.tokenService,
    })),
  });
  return { kind: 'ok', image };
}

/** Why a file is not requested without TLS. */
export function plainHttpProblem(registry: string): string {
  return (
    `${registry} would be asked by plain HTTP, which the fleet does not allow; name it by https, ` +
    `or allow it: rackwright fleet registry set ${registry} --plain-http`
  );
}

function refuse(problem: string): HostImageResult {
  return { kind: 'refused', problem };
}
