/**
 * Flags for what templates may reach outside; see `rackwright fleet update`.
 *
 * Invariant: what is not named stays. Several teams share these lists; whoever lets something in
 * for one of them takes nothing from the others.
 */
import type { TemplatePolicy } from '@rackwright/messages';
import { UsageError } from '../../failure.ts';

const listFlag = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, variadic: true, optional: true, brief, placeholder }) as const;

const drop = (what: string, placeholder: string) =>
  listFlag(`Take ${what} back; repeatable`, placeholder);

export const policyFlags = {
  imageRepository: listFlag(
    'Let commands come from REGISTRY/REPOSITORY or REGISTRY/PART/* too; repeatable',
    'repository',
  ),
  noImageRepository: drop('such a repository', 'repository'),
  plainHttpRegistry: listFlag('Ask HOST:PORT without TLS too; repeatable', 'registry'),
  noPlainHttpRegistry: drop('such a registry', 'registry'),
  registryCredential: listFlag(
    'REGISTRY=CREDENTIAL that the registry is shown; may be repeated',
    'registry=credential',
  ),
  noRegistryCredential: drop('the credential for a registry', 'registry'),
  registryTokenService: listFlag(
    'REGISTRY=HOST of the token service that may be shown its credential; repeatable',
    'registry=host',
  ),
  noRegistryTokenService: drop('the token service of a registry', 'registry'),
  webhookUrl: listFlag('Let webhooks call what begins with this too; may be repeated', 'url'),
  noWebhookUrl: drop('such a beginning', 'url'),
  templateCredential: listFlag(
    'Let templates give their steps user name or password of it too; repeatable',
    'credential',
  ),
  noTemplateCredential: drop('such a credential', 'credential'),
  internalAddress: listFlag(
    'Let images, webhooks and BMCs be at this ADDRESS, ADDRESS:PORT or NETWORK too; repeatable',
    'address',
  ),
  noInternalAddress: drop('such an address', 'address'),
} as const;

export type PolicyFlags = { readonly [F in keyof typeof policyFlags]?: readonly string[] };

/** What a policy is made of, as an update takes it. */
type Policy = Omit<TemplatePolicy, '$typeName' | '$unknown'>;

/** A change of the policy that was asked for. */
export interface PolicyChange {
  /** Of an update; empty: nothing was asked for. */
  readonly paths: readonly string[];
  /** What `now` becomes. Throws `UsageError` when something is to go that is not there. */
  readonly over: (now: TemplatePolicy | undefined) => Policy;
  /** The same of the fleet’s internal addresses. */
  readonly internal: (now: readonly string[] | undefined) => string[];
}

export function parsePolicy(flags: PolicyFlags): PolicyChange {
  const given: readonly (readonly [string, ...(readonly string[] | undefined)[]])[] = [
    ['image_repositories', flags.imageRepository, flags.noImageRepository],
    ['plain_http_registries', flags.plainHttpRegistry, flags.noPlainHttpRegistry],
    ['registry_credentials', flags.registryCredential, flags.noRegistryCredential],
    ['registry_token_services', flags.registryTokenService, flags.noRegistryTokenService],
    ['webhook_urls', flags.webhookUrl, flags.noWebhookUrl],
    ['credentials', flags.templateCredential, flags.noTemplateCredential],
  ];
  const paths = given.flatMap(([path, ...texts]) =>
    texts.every((each) => each === undefined) ? [] : [`spec.templates.${path}`],
  );
  const { internalAddress, noInternalAddress } = flags;
  if (internalAddress !== undefined || noInternalAddress !== undefined) {
    paths.push('spec.internal_addresses');
  }
  const internal = (now: readonly string[] | undefined): string[] =>
    changed('internal-address', now, internalAddress, noInternalAddress);
  const credentials = mapChange(
    'registry-credential',
    flags.registryCredential,
    flags.noRegistryCredential,
    credentialName,
  );
  const tokenServices = mapChange(
    'registry-token-service',
    flags.registryTokenService,
    flags.noRegistryTokenService,
    (text) => text,
  );
  const over = (now: TemplatePolicy | undefined): Policy => {
    return {
      imageRepositories: changed(
        'image-repository',
        now?.imageRepositories,
        flags.imageRepository,
        flags.noImageRepository,
      ),
      plainHttpRegistries: changed(
        'plain-http-registry',
        now?.plainHttpRegistries,
        flags.plainHttpRegistry,
        flags.noPlainHttpRegistry,
      ),
      registryCredentials: credentials(now?.registryCredentials),
      registryTokenServices: tokenServices(now?.registryTokenServices),
      webhookUrls: changed('webhook-url', now?.webhookUrls, flags.webhookUrl, flags.noWebhookUrl),
      credentials: changed(
        'template-credential',
        now?.credentials,
        flags.templateCredential?.map((text) => (text === 'none' ? text : credentialName(text))),
        flags.noTemplateCredential?.map(credentialName),
      ),
    };
  };
  return { paths, over, internal };
}

/** "none" alone takes all of a list back. */
function isNone(texts: readonly string[] = []): boolean {
  return texts.length === 1 && texts[0] === 'none';
}

function changed(
  flag: string,
  now: readonly string[] = [],
  added: readonly string[] = [],
  gone: readonly string[] = [],
): string[] {
  const missing = gone.find((text) => !now.includes(text));
  if (missing !== undefined) {
    const known = now.length === 0 ? 'nothing is there' : `there is ${now.join(', ')}`;
    throw new UsageError(`--no-${flag} is "${missing}", which is not there; ${known}`);
  }
  if (isNone(added)) return [];
  return [...new Set([...now.filter((text) => !gone.includes(text)), ...added])];
}

/** A change of what each registry has: REGISTRY=TEXT adds, REGISTRY alone removes. */
function mapChange(
  flag: string,
  added: readonly string[] = [],
  gone: readonly string[] | undefined,
  valueOf: (text: string) => string,
): (now: Readonly<Record<string, string>> | undefined) => Record<string, string> {
  const form = flag === 'registry-credential' ? 'REGISTRY=CREDENTIAL' : 'REGISTRY=HOST';
  const given = added
    .filter((text) => text !== 'none')
    .map((text) => {
      const [registry = '', value = '', ...more] = text.split('=');
      if (registry === '' || value === '' || more.length > 0) {
        throw new UsageError(`--${flag} is "${text}"; it must be ${form}`);
      }
      return [registry, valueOf(value)] as const;
    });
  return (now = {}) => {
    const left = isNone(added) ? [] : changed(flag, Object.keys(now), [], gone);
    return Object.fromEntries([...left.map((each) => [each, now[each] ?? ''] as const), ...given]);
  };
}

function credentialName(text: string): string {
  return text.startsWith('credentials/') ? text : `credentials/${text}`;
}
