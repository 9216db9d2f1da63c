/**
 * The external targets of templates' steps: images of commands and receivers of webhooks, as the
 * fleet's policy permits them. Pure.
 *
 * 1. A target that the policy does not name is not reached. The policy is checked before anything
 *    is started, and again when an operation is created.
 * 2. Names are compared by meaning: a repository part by part, a URL by scheme, host, port and
 *    whole parts of its path. An ambiguous name is refused.
 */
import { create } from '@bufbuild/protobuf';
import { agent, type CredentialName, commandStep, webhookStep } from '@rackwright/messages';
import { isRegistry, isRepository, parseReference } from '@rackwright/oci';
import { entriesNaming, invalid, problemIn, type Read, valid } from '@rackwright/platform';
import { idOf } from '../records/index.ts';
import type { Policy } from './policy.ts';
import { secretsProblem } from './step-secrets.ts';

/** The part of a step that names external targets. */
export interface ReachingStep {
  /** "run.command", "webhook", or a step without external targets. */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
}

const shownCharactersMax = 200;
const urlCharactersMax = 2_048;

/** Why a step may not run, and what would permit it; undefined: it may. */
export function reachProblem(
  policy: Policy,
  { step, arguments: given }: ReachingStep,
): string | undefined {
  switch (step) {
    case commandStep:
      return imageProblem(policy, given['image'] ?? '') ?? secretsProblem(policy, given);
    case webhookStep:
      return webhookProblem(policy, given['url'] ?? '') ?? secretsProblem(policy, given);
    default:
      return secretsProblem(policy, given);
  }
}

function imageProblem(policy: Policy, text: string): string | undefined {
  const read = parseReference(text);
  if (read.kind === 'bad') return `its image ${read.problem}; it is ${shown(text)}`;
  const { registry, repository, digest } = read.reference;
  if (digest === undefined) {
    return `its image is named by no digest: write ${registry}/${repository}@sha256:…`;
  }
  const name = `${registry}/${repository}`;
  const allowed = policy?.imageRepositories ?? [];
  if (allowed.some((pattern) => isRepositoryIn(pattern, name))) return undefined;
  const flag = `rackwright fleet update --image-repository ${name}`;
  return `the fleet allows no command from ${name}; allow it by \`${flag}\``;
}

/**
 * A pattern that ends with "/*" matches one or more further parts; any other matches only the same
 * name.
 */
function isRepositoryIn(pattern: string, name: string): boolean {
  if (!pattern.endsWith('/*')) return name === pattern;
  const above = pattern.slice(0, -1);
  return name.startsWith(above) && name.length > above.length;
}

function webhookProblem(policy: Policy, text: string): string | undefined {
  const read = readUrl(text);
  if (read.kind === 'bad') return `its url ${read.problem}`;
  const url = read.value;
  const allowed = policy?.webhookUrls ?? [];
  if (allowed.some((prefix) => isBelow(url, prefix))) return undefined;
  // Refusals are recorded, and the path of a webhook often contains its secret: it is not repeated.
  const flag = `rackwright fleet update --webhook-url ${url.origin}/`;
  const refusal = `the fleet allows no webhook at ${url.origin} there; allow it by`;
  if (url.pathname === '/') return `${refusal} \`${flag}\``;
  return `${refusal} \`${flag}PATH/\`, PATH/ being as much of its path as may be called`;
}

/** What is wrong with the URL of a webhook; undefined when it is valid. */
export function urlProblem(text: string): string | undefined {
  return problemIn(readUrl(text));
}

/** The same scheme, host and port, and the path parts of the prefix, each whole. */
function isBelow(url: URL, prefix: string): boolean {
  const allowed = URL.parse(prefix);
  if (allowed === null || allowed.origin !== url.origin) return false;
  const above = allowed.pathname.endsWith('/') ? allowed.pathname : `${allowed.pathname}/`;
  return url.pathname === allowed.pathname || url.pathname.startsWith(above);
}

/** Characters of a path that some servers interpret: steps, parameters, other slashes. */
const steering = ['/', '\\', '.', ';', '%'] as const;

/**
 * Whether servers interpret the path of `text` in different ways. Some remove ";…" from a part
 * before they look for "..", decode twice, merge slashes, or convert wide forms of characters
 * (U+FF0E) to plain ones.
 */
function hasTwoReadings(text: string): boolean {
  const [, path] = /^https?:\/\/[^/\\?#]+([^?#]*)/i.exec(text) ?? [];
  if (path === undefined || /[\\;\s\p{Cc}]|\/\/|\/\.{1,2}(?:\/|$)/u.test(path)) return true;
  let decoded: string;
  try {
    decoded = decodeURIComponent(path).normalize('NFKC');
  } catch {
    // A "%" without two digits: servers read it in different ways.
    return true;
  }
  if (/\p{Cc}/u.test(decoded)) return true;
  // Removes every complete percent code.
  const plain = path.replaceAll(/%[0-9a-f]{2}/gi, '');
  return steering.some((sign) => decoded.split(sign).length !== plain.split(sign).length);
}

/** The URL, or what is wrong with it. */
function readUrl(text: string): Read<URL> {
  if (text.length > urlCharactersMax)
    return invalid(`has more than ${urlCharactersMax} characters`);
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) {
    return invalid('must begin with https:// or http:// and a host');
  }
  if (url.username !== '' || url.password !== '') {
    return invalid('holds a user or a password; send a header instead');
  }
  if (hasTwoReadings(text)) {
    return invalid('has a path with "..", "//", ";", "\\" or a coded sign of these, "/" or "%"');
  }
  return valid(url);
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, shownCharactersMax));
}

/** The image of a command for the agent, or why there is none. */
export type CommandImageResult =
  | { readonly kind: 'ok'; readonly image: agent.CommandImage }
  | { readonly kind: 'refused'; readonly problem: string };

/**
 * `versions`: of the existing credentials that the policy names. `internalAddresses`: those that
 * the fleet lists.
 */
export function commandImageOf(
  { arguments: given }: Pick<ReachingStep, 'arguments'>,
  policy: Policy,
  versions: ReadonlyMap<string, bigint>,
  internalAddresses: readonly string[] = [],
): CommandImageResult {
  const reference = given['image'] ?? '';
  const problem = imageProblem(policy, reference);
  const read = parseReference(reference);
  if (problem !== undefined || read.kind === 'bad') {
    return { kind: 'refused', problem: problem ?? 'its image cannot be read' };
  }
  const { registry } = read.reference;
  const credentials = policy?.registryCredentials ?? {};
  const credential = Object.hasOwn(credentials, registry) ? (credentials[registry] ?? '') : '';
  const credentialVersion = versions.get(credential);
  if (credential !== '' && credentialVersion === undefined) {
    const id = idOf(credential);
    const command = `rackwright credential create ${id} --username USER`;
    const text = `${credential}, which the fleet names for ${registry}, does not exist`;
    return { kind: 'refused', problem: `${text}; create it by \`${command}\`` };
  }
  const plainHttp = policy?.plainHttpRegistries.includes(registry) ?? false;
  const services = policy?.registryTokenServices ?? {};
  const tokenService = Object.hasOwn(services, registry) ? (services[registry] ?? '') : '';
  const image = create(agent.CommandImageSchema, {
    ...{ reference, plainHttp, credential, tokenService },
    credentialVersion: credentialVersion ?? 0n,
    // The policy itself names the registry.
    internalAddresses: [...internalAddresses, ...entriesNaming(registry, plainHttp ? 80 : 443)],
  });
  return { kind: 'ok', image };
}

const entriesMax = 100;
/** Each is read at every reconcile of a host. */
const credentialsMax = 16;

/** What is wrong with a policy: fields below it, and what would be right. */
export function policyProblems(
  policy: NonNullable<Policy>,
): { readonly field: string; readonly description: string }[] {
  const { imageRepositories, plainHttpRegistries, webhookUrls, registryCredentials } = policy;
  const registries = Object.keys(registryCredentials);
  const services = policy.registryTokenServices;
  return [
    ...list('image_repositories', imageRepositories, repositoryProblem),
    ...list('plain_http_registries', plainHttpRegistries, registryProblem),
    ...list('webhook_urls', webhookUrls, prefixProblem),
    ...list(
      'registry_credentials',
      registries,
      (registry) => credentialProblem(registry, registryCredentials[registry] ?? ''),
      credentialsMax,
    ),
    ...list('credentials', policy.credentials, credentialNameProblem, credentialsMax),
    ...list(
      'registry_token_services',
      Object.keys(services),
      (registry) => registryProblem(registry) ?? registryProblem(services[registry] ?? ''),
      credentialsMax,
    ),
  ];
}

function list(
  field: string,
  texts: readonly string[],
  problemOf: (text: string) => string | undefined,
  max = entriesMax,
): { field: string; description: string }[] {
  if (texts.length > max) {
    return [{ field, description: `has ${texts.length} entries; at most ${max} are kept` }];
  }
  return texts.flatMap((text, index) => {
    const description = problemOf(text);
    return description === undefined ? [] : [{ field: `${field}[${index}]`, description }];
  });
}

function repositoryProblem(text: string): string | undefined {
  const name = text.endsWith('/*') ? text.slice(0, -2) : text;
  const slash = name.indexOf('/');
  const registry = slash === -1 ? name : name.slice(0, slash);
  const isWhole = slash === -1 ? text.endsWith('/*') : isRepository(name.slice(slash + 1));
  if (isRegistry(registry) && isWhole) return undefined;
  const form =
    '"registry.example.org/tools/check", or "registry.example.org/tools/*" for all below';
  return `must have the form ${form}; it is ${shown(text)}`;
}

function registryProblem(text: string): string | undefined {
  return isRegistry(text)
    ? undefined
    : `must have the form "host" or "host:port"; it is ${shown(text)}`;
}

function prefixProblem(text: string): string | undefined {
  const read = readUrl(text);
  if (read.kind === 'bad') return read.problem;
  if (/[?#]/.test(text)) return 'must end with its path: what is called may add a query';
  return undefined;
}

function credentialProblem(registry: string, credential: CredentialName): string | undefined {
  const problem = registryProblem(registry);
  return problem ?? credentialNameProblem(credential);
}

function credentialNameProblem(credential: CredentialName): string | undefined {
  if (/^credentials\/[a-z][a-z0-9-]{0,62}$/.test(credential)) return undefined;
  return `must name a credential, as "credentials/CREDENTIAL"; it is ${shown(credential)}`;
}
