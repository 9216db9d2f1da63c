/**
 * What the steps of templates may reach outside: images of commands and receivers of webhooks, as
 * the fleet's policy lets them in. Pure.
 *
 * 1. What the policy does not name is not reached. It is asked before anything is started, and
 *    again when an operation is made.
 * 2. Names are compared as what they mean: a repository part by part, a URL by scheme, host, port
 *    and whole parts of its path. What could be read in two ways is refused.
 */
import { create } from '@bufbuild/protobuf';
import { agent, commandStep, webhookStep } from '@rackwright/messages';
import { isRegistry, isRepository, parseReference } from '@rackwright/oci';
import { entriesNaming } from '@rackwright/platform';
import { idOf } from '../records/index.ts';
import type { Policy } from './policy.ts';
import { secretsProblem } from './step-secrets.ts';

/** A step as far as it reaches outside. */
export interface ReachingStep {
  /** "run.command", "webhook", or another that reaches nothing. */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
}

const shownCharactersMax = 200;
const urlCharactersMax = 2_048;

/** Why a step may not run, and what would let it; undefined: it may. */
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

/** A pattern ends with "/*", which stands for any parts, one at least; else it is the name. */
function isRepositoryIn(pattern: string, name: string): boolean {
  if (!pattern.endsWith('/*')) return name === pattern;
  const above = pattern.slice(0, -1);
  return name.startsWith(above) && name.length > above.length;
}

function webhookProblem(policy: Policy, text: string): string | undefined {
  const read = readUrl(text);
  if (typeof read === 'string') return `its url ${read}`;
  const allowed = policy?.webhookUrls ?? [];
  if (allowed.some((prefix) => isBelow(read, prefix))) return undefined;
  // Refusals are recorded, and the path of a webhook often holds its secret: it is not repeated.
  const flag = `rackwright fleet update --webhook-url ${read.origin}/`;
  const refusal = `the fleet allows no webhook at ${read.origin} there; allow it by`;
  if (read.pathname === '/') return `${refusal} \`${flag}\``;
  return `${refusal} \`${flag}PATH/\`, PATH/ being as much of its path as may be called`;
}

/** What is wrong with a URL that webhooks are called at; undefined when it is fine. */
export function urlProblem(text: string): string | undefined {
  const read = readUrl(text);
  return typeof read === 'string' ? read : undefined;
}

/** The same scheme, host and port, and the prefix' parts of the path, each whole. */
function isBelow(url: URL, prefix: string): boolean {
  const allowed = URL.parse(prefix);
  if (allowed === null || allowed.origin !== url.origin) return false;
  const above = allowed.pathname.endsWith('/') ? allowed.pathname : `${allowed.pathname}/`;
  return url.pathname === allowed.pathname || url.pathname.startsWith(above);
}

/** Signs of a path that lead elsewhere on some servers: steps, parameters, other slashes. */
const steering = ['/', '\\', '.', ';', '%'] as const;

/**
 * Whether servers read the path of `text` in different ways. Some take ";…" off a part before they
 * look for "..", decode twice, join slashes, or fold wide forms of signs (U+FF0E) to plain ones.
 */
function hasTwoReadings(text: string): boolean {
  const [, path] = /^https?:\/\/[^/\\?#]+([^?#]*)/i.exec(text) ?? [];
  if (path === undefined || /[\\;\s\p{Cc}]|\/\/|\/\.{1,2}(?:\/|$)/u.test(path)) return true;
  let decoded: string;
  try {
    decoded = decodeURIComponent(path).normalize('NFKC');
  } catch {
    return true;
  }
  if (/\p{Cc}/u.test(decoded)) return true;
  // Every "%" that begins a code goes with it.
  const plain = path.replaceAll(/%[0-9a-f]{2}/gi, '');
  return steering.some((sign) => decoded.split(sign).length !== plain.split(sign).length);
}

/** The URL, or what is wrong with it. */
function readUrl(text: string): URL | string {
  if (text.length > urlCharactersMax) return `has more than ${urlCharactersMax} characters`;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) {
    return 'must begin with https:// or http:// and a host';
  }
  if (url.username !== '' || url.password !== '') {
    return 'holds a user or a password; send a header instead';
  }
  if (hasTwoReadings(text)) {
    return 'has a path with "..", "//", ";", "\\" or a coded sign of these, "/" or "%"';
  }
  return url;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, shownCharactersMax));
}

/** The image of a command for the agent, or why there is none. */
export type CommandImageResult =
  | { readonly kind: 'ok'; readonly image: agent.CommandImage }
  | { readonly kind: 'refused'; readonly problem: string };

/**
 * `versions`: of the credentials that the policy names and that exist. `internalAddresses`: those
 * that the fleet lists.
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
    // The policy names the registry itself.
    internalAddresses: [...internalAddresses, ...entriesNaming(registry, plainHttp ? 80 : 443)],
  });
  return { kind: 'ok', image };
}

const entriesMax = 100;
/** Each is read whenever a host is looked at. */
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
  return `must be as ${form}; it is ${shown(text)}`;
}

function registryProblem(text: string): string | undefined {
  return isRegistry(text) ? undefined : `must be as "host" or "host:port"; it is ${shown(text)}`;
}

function prefixProblem(text: string): string | undefined {
  const url = readUrl(text);
  if (typeof url === 'string') return url;
  if (/[?#]/.test(text)) return 'must end with its path: what is called may add a query';
  return undefined;
}

function credentialProblem(registry: string, credential: string): string | undefined {
  const problem = registryProblem(registry);
  return problem ?? credentialNameProblem(credential);
}

function credentialNameProblem(credential: string): string | undefined {
  if (/^credentials\/[a-z][a-z0-9-]{0,62}$/.test(credential)) return undefined;
  return `must name a credential, as "credentials/CREDENTIAL"; it is ${shown(credential)}`;
}
