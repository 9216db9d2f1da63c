/**
 * The credentials of a template's step, and whether the fleet permits them. Pure.
 *
 * Must not: hold a secret; records and orders contain only names of credentials.
 */
import { create } from '@bufbuild/protobuf';
import { agent, type CredentialName } from '@rackwright/messages';
import { parsedJson } from '@rackwright/platform';
import { idOf } from '../records/index.ts';
import type { Policy } from './policy.ts';

/** A secret value, under the name of a variable or a header. */
export interface NamedSecret {
  readonly name: string;
  /** "credentials/CREDENTIAL" */
  readonly credential: CredentialName;
  readonly part: 'password' | 'username';
  readonly prefix: string;
}

type ArgumentValues = Readonly<Record<string, string>>;

const secretsMax = 96;

/** The names in an argument; undefined when it cannot be parsed. */
export function readSecrets(text: string | undefined): readonly NamedSecret[] | undefined {
  if (text === undefined || text === '') return [];
  const parsed = parsedJson(text);
  if (!isRecord(parsed)) return undefined;
  const entries = Object.entries(parsed);
  if (entries.length > secretsMax) return undefined;
  const secrets: NamedSecret[] = [];
  for (const [name, value] of entries) {
    if (!isRecord(value)) return undefined;
    const { credential, part, prefix = '' } = value;
    if (typeof credential !== 'string' || typeof prefix !== 'string') return undefined;
    if (part !== 'password' && part !== 'username') return undefined;
    secrets.push({ name, credential, part, prefix });
  }
  return secrets;
}

/** All secrets of a step: in variables and in headers. */
function secretsOf(given: ArgumentValues): readonly NamedSecret[] | undefined {
  const variables = readSecrets(given['secretEnvironment']);
  const headers = readSecrets(given['secretHeaders']);
  if (variables === undefined || headers === undefined) return undefined;
  return [...variables, ...headers];
}

/** Why the step may not have them, and what would permit it; undefined: it may, or has none. */
export function secretsProblem(policy: Policy, given: ArgumentValues): string | undefined {
  const secrets = secretsOf(given);
  if (secrets === undefined) return 'the credentials that it names cannot be read';
  const allowed = policy?.credentials ?? [];
  const refused = secrets.find(({ credential }) => !allowed.includes(credential));
  if (refused === undefined) return undefined;
  const id = idOf(refused.credential);
  const flag = `rackwright fleet update --template-credential ${id}`;
  return `the fleet gives ${refused.credential} to no step; allow it by \`${flag}\``;
}

/** Why one of them is missing, and a remedy. `versions`: of the existing ones. */
export function missingSecret(
  given: ArgumentValues,
  versions: ReadonlyMap<CredentialName, bigint>,
): string | undefined {
  const missing = (secretsOf(given) ?? []).find(({ credential }) => !versions.has(credential));
  if (missing === undefined) return undefined;
  const id = idOf(missing.credential);
  const command = `rackwright credential create ${id} --username USER`;
  return `${missing.credential}, which it names, does not exist; create it by \`${command}\``;
}

/** The secrets that the agent gives the step's program, by credential and version. */
export function secretUses(
  given: ArgumentValues,
  versions: ReadonlyMap<CredentialName, bigint>,
): agent.SecretUse[] {
  return (readSecrets(given['secretEnvironment']) ?? []).map(({ name, credential, part }) =>
    create(agent.SecretUseSchema, {
      variable: name,
      credential,
      credentialVersion: versions.get(credential) ?? 0n,
      part: part === 'username' ? agent.SecretUse_Part.USERNAME : agent.SecretUse_Part.PASSWORD,
    }),
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
