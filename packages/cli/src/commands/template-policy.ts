/** Flags for what templates may reach outside; see `rackwright fleet update`. */
import { UsageError } from '../failure.ts';

const listFlag = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, variadic: true, optional: true, brief, placeholder }) as const;

export const policyFlags = {
  imageRepository: listFlag(
    'Repository that commands may come from, REGISTRY/REPOSITORY or REGISTRY/PART/*; repeatable',
    'repository',
  ),
  plainHttpRegistry: listFlag(
    'Registry that is asked without TLS, HOST:PORT; repeatable',
    'registry',
  ),
  registryCredential: listFlag(
    'REGISTRY=CREDENTIAL that the registry is shown; may be repeated',
    'registry=credential',
  ),
  webhookUrl: listFlag('What URLs of webhooks must begin with; may be repeated', 'url'),
} as const;

export interface PolicyFlags {
  readonly imageRepository?: readonly string[];
  readonly plainHttpRegistry?: readonly string[];
  readonly registryCredential?: readonly string[];
  readonly webhookUrl?: readonly string[];
}

/** What was given, and the paths of an update that it is. */
export function parsePolicy(flags: PolicyFlags) {
  const given: readonly (readonly [string, readonly string[] | undefined])[] = [
    ['image_repositories', flags.imageRepository],
    ['plain_http_registries', flags.plainHttpRegistry],
    ['registry_credentials', flags.registryCredential],
    ['webhook_urls', flags.webhookUrl],
  ];
  const paths = given.flatMap(([path, texts]) =>
    texts === undefined ? [] : [`spec.templates.${path}`],
  );
  const templates = {
    imageRepositories: entries(flags.imageRepository),
    plainHttpRegistries: entries(flags.plainHttpRegistry),
    registryCredentials: Object.fromEntries(entries(flags.registryCredential).map(credentialOf)),
    webhookUrls: entries(flags.webhookUrl),
  };
  return { templates, paths };
}

/** "none" alone is an empty list. */
function entries(texts: readonly string[] = []): string[] {
  return texts.length === 1 && texts[0] === 'none' ? [] : [...texts];
}

function credentialOf(text: string): [string, string] {
  const [registry = '', name = '', ...more] = text.split('=');
  if (registry === '' || name === '' || more.length > 0) {
    throw new UsageError(`--registry-credential is "${text}"; it must be REGISTRY=CREDENTIAL`);
  }
  return [registry, name.startsWith('credentials/') ? name : `credentials/${name}`];
}
