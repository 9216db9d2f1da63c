/**
 * The fleet's fields as flags. Each field that a person sets is one entry, with its flags, its
 * path, its value there and its form in lists. Lists of registries and of clean steps have commands
 * of their own (`listField`).
 *
 * Invariant: fields and list entries that are not named stay. Several teams share these lists; a
 * person who allows something for one of them takes nothing from the others.
 */
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import {
  type FleetSpec,
  type FleetSpecSchema,
  VerificationPolicySchema,
} from '@rackwright/messages';
import { UsageError } from '../../failure.ts';
import {
  parseMapChange,
  parsePriorities,
  removedKey,
  resourceName,
  textFlag,
} from '../../flags.ts';
import { askedText } from '../../output/registry.ts';
import {
  type FlagField,
  field,
  flagsOf,
  type GivenFields,
  givenBy,
  kebab,
  namesOf,
  pathOf,
  setField,
  type ValuesOf,
} from '../frame/fields.ts';
import { budgetText, parseBudget, wipeBudgetFlag } from '../frame/limits.ts';
import { parseVerification, verificationFlag } from '../host/verification-spec.ts';

const textsFlag = (brief: string, placeholder: string) =>
  ({ ...textFlag(brief, placeholder), variadic: true }) as const;

/** A field with one value, and how it is shown; '' is not. */
function shown<F extends FlagField>(
  title: string,
  entry: F,
  text: (spec: FleetSpec) => string,
): F & { readonly title: string; readonly text: (spec: FleetSpec) => string } {
  return { ...entry, title, text };
}

/** A word in certificates; an empty one leaves it out. */
function word(key: 'organisation' | 'customer' | 'technician', brief: string) {
  const flag = textFlag(`${brief}, as certificates say it; "" leaves it out`, 'name');
  const entry = { ...field(flag, `erasureReport.${key}`), clears: true };
  return shown(key, entry, ({ erasureReport }) => erasureReport?.[key] ?? '');
}

const values = {
  wipeBudget: shown(
    'wipe budget',
    field(wipeBudgetFlag.wipeBudget, 'wipeBudget', parseBudget),
    (spec) => budgetText(spec.wipeBudget),
  ),
  verification: shown(
    'verification',
    field(verificationFlag.verification, 'verification', parseVerification),
    ({ verification: policy }) =>
      policy === undefined ? '' : JSON.stringify(toJson(VerificationPolicySchema, policy)),
  ),
  organisation: word('organisation', 'Who erases'),
  customer: word('customer', 'For whom'),
  technician: word('technician', 'Which technician'),
} as const;

/** The new value of a list or map, from the texts of its two flags. Throws `UsageError`. */
type Change = (
  flag: string,
  added: readonly string[],
  gone: readonly string[],
) => (now: FleetSpec) => readonly string[] | Record<string, string>;

/** A list or map that one flag adds to, and the same with "no" before it takes from. */
interface ListFlag {
  readonly at: string;
  readonly title: string;
  /** The help text of the flag that adds. */
  readonly brief: string;
  /** The object of the other flag, which removes. */
  readonly one: string;
  readonly placeholder: string;
  readonly texts: (spec: FleetSpec) => readonly string[];
  readonly change: Change;
}

/** The full names of texts, and their short form. */
interface Naming {
  readonly full: (text: string) => string;
  readonly short: (name: string) => string;
}

const asTheyAre: Naming = { full: (text) => text, short: (name) => name };

const credentials: Naming = {
  full: (text) => resourceName('credentials', text),
  short: (name) => name.replace(/^credentials\//, ''),
};

const listFlags = {
  imageRepository: {
    ...{ at: 'templates.imageRepositories', title: 'images from', placeholder: 'repository' },
    brief: 'Let commands come from REGISTRY/REPOSITORY or REGISTRY/PART/* too; repeatable',
    one: 'such a repository',
    ...listOf(({ templates }) => templates?.imageRepositories),
  },
  plainHttpRegistry: {
    ...{ at: 'templates.plainHttpRegistries', title: 'plain HTTP to', placeholder: 'registry' },
    brief: 'Ask HOST:PORT without TLS too; repeatable',
    one: 'such a registry',
    ...listOf(({ templates }) => templates?.plainHttpRegistries),
  },
  registryCredential: {
    ...{ at: 'templates.registryCredentials', title: 'credential for' },
    placeholder: 'registry=credential',
    brief: 'REGISTRY=CREDENTIAL that the registry is shown; may be repeated',
    one: 'the credential for a registry',
    ...mapOf(({ templates }) => templates?.registryCredentials, 'CREDENTIAL', credentials),
  },
  registryTokenService: {
    ...{ at: 'templates.registryTokenServices', title: 'token service of' },
    placeholder: 'registry=host',
    brief: 'REGISTRY=HOST of the token service that may be shown its credential; repeatable',
    one: 'the token service of a registry',
    ...mapOf(({ templates }) => templates?.registryTokenServices, 'HOST'),
  },
  webhookUrl: {
    ...{ at: 'templates.webhookUrls', title: 'webhooks to', placeholder: 'url' },
    brief: 'Let webhooks call what begins with this too; may be repeated',
    one: 'such a beginning',
    ...listOf(({ templates }) => templates?.webhookUrls),
  },
  templateCredential: {
    ...{ at: 'templates.credentials', title: 'secrets of', placeholder: 'credential' },
    brief: 'Let templates give their steps user name or password of it too; repeatable',
    one: 'such a credential',
    ...listOf(({ templates }) => templates?.credentials, credentials),
  },
  internalAddress: {
    ...{ at: 'internalAddresses', title: 'internal', placeholder: 'address' },
    brief:
      'Let images, webhooks and BMCs be at this ADDRESS, ADDRESS:PORT or NETWORK too; repeatable',
    one: 'such an address',
    ...listOf(({ internalAddresses }) => internalAddresses),
  },
} as const satisfies Readonly<Record<string, ListFlag>>;

type ListFlagName = keyof typeof listFlags;
type TakesBack<Name extends string> = `no${Capitalize<Name>}`;
type ListFlagPairs = {
  readonly [Name in ListFlagName | TakesBack<ListFlagName>]: ReturnType<typeof textsFlag>;
};

const listFlagNames = Object.keys(listFlags) as ListFlagName[];

function takesBack<Name extends string>(name: Name): TakesBack<Name> {
  return `no${name.slice(0, 1).toUpperCase()}${name.slice(1)}` as TakesBack<Name>;
}

function listFlagPairs(): ListFlagPairs {
  const flags = listFlagNames.flatMap((name) => {
    const { brief, one, placeholder } = listFlags[name];
    const back = textsFlag(`Take ${one} back; repeatable`, placeholder.replace(/=.*/, ''));
    return [[name, textsFlag(brief, placeholder)] as const, [takesBack(name), back] as const];
  });
  return Object.fromEntries(flags) as ListFlagPairs;
}

const priorityFlags = {
  priority: textsFlag(
    'INTERFACE.STEP=NUMBER for every host, 0 disables; INTERFACE.STEP- undoes it',
    'step=number',
  ),
  poolPriority: textsFlag(
    'POOL:INTERFACE.STEP=NUMBER for the hosts of a pool; may be repeated',
    'pool:step=number',
  ),
} as const;

/** Flags of `fleet update`. */
export const fleetFlags = {
  ...flagsOf(values),
  ...priorityFlags,
  ...listFlagPairs(),
} as const;

/** Values of `fleetFlags`. */
export type FleetFlags = ValuesOf<typeof values> & {
  readonly [Name in keyof typeof priorityFlags | keyof ListFlagPairs]?: readonly string[];
};

/** A requested change. */
export interface FleetChange {
  /** The paths of an update; never empty. */
  readonly paths: string[];
  /**
   * Whether it depends on the present value: the update then names the etag of the fleet that was
   * read.
   */
  readonly dependsOnNow: boolean;
  /** What `now` becomes, as far as `paths` name it. Throws `UsageError`. */
  readonly over: (now: FleetSpec) => MessageInitShape<typeof FleetSpecSchema>;
}

/** The change that the flags ask for. Throws `UsageError`, also when they ask for nothing. */
export function fleetChange(flags: FleetFlags): FleetChange {
  const given = givenBy(values, flags);
  const { set, paths } = parseMapChange(
    '--priority',
    'spec.priority_overrides',
    flags.priority,
    (texts) => parsePriorities('--priority', texts),
  );
  const changes = [...listChanges(flags), ...poolChanges(flags.poolPriority)];
  const all = [...given.paths, ...paths, ...changes.map(({ at }) => pathOf(at))];
  if (all.length === 0) {
    const names = namesOf({ ...values, ...priorityFlags, ...listFlags });
    throw new UsageError(`nothing to change: give ${names}`);
  }
  return {
    paths: all,
    dependsOnNow: changes.length > 0,
    over: (now) => {
      const next: GivenFields = givenBy(values, flags);
      setField(next, 'priorityOverrides', set);
      for (const { at, value } of changes) setField(next, at, value(now));
      return next.spec;
    },
  };
}

/** A field that becomes something else than it is. */
interface FieldChange {
  readonly at: string;
  readonly value: (now: FleetSpec) => unknown;
}

function listChanges(flags: FleetFlags): FieldChange[] {
  return listFlagNames.flatMap((name) => {
    const added = flags[name];
    const gone = flags[takesBack(name)];
    if (added === undefined && gone === undefined) return [];
    const { at, change } = listFlags[name];
    return [{ at, value: change(kebab(name), added ?? [], gone ?? []) }];
  });
}

/** What `fleet get` shows of a fleet, in the order of the table. */
export function fleetRows(spec: FleetSpec): [string, string][] {
  const single = Object.values(values).map(({ title, text }): [string, string] => {
    return [title, text(spec)];
  });
  return [
    ...single.filter(([title, text]) => text !== '' || title === 'wipe budget'),
    ...priorityRows('priority', spec.priorityOverrides),
    ...Object.values(listFlags).flatMap(({ title, texts }) => rows(title, texts(spec))),
    ...spec.registries.flatMap((each) => rows(`registry ${each.registry}`, [askedText(each)])),
    ...spec.ownCleanSteps.flatMap(({ name, image }) => rows(`clean step own.${name}`, [image])),
    ...spec.pools.flatMap((each) => priorityRows(`pool ${each.pool}`, each.priorityOverrides)),
  ];
}

function rows(title: string, texts: readonly string[]): [string, string][] {
  return texts.map((text) => [title, text]);
}

function priorityRows(title: string, byStep: Readonly<Record<string, number>>): [string, string][] {
  return rows(
    title,
    Object.entries(byStep).map(([step, priority]) => `${step}=${priority}`),
  );
}

function listOf(
  of: (spec: FleetSpec) => readonly string[] | undefined,
  { full, short }: Naming = asTheyAre,
): Pick<ListFlag, 'texts' | 'change'> {
  return {
    texts: (spec) => (of(spec) ?? []).map(short),
    change: (flag, added, gone) => {
      const texts = isNone(added) ? added : added.map(full);
      return (now) => changed(flag, of(now), texts, gone.map(full));
    },
  };
}

/** A map by registries: REGISTRY=TEXT adds, REGISTRY alone removes. */
function mapOf(
  of: (spec: FleetSpec) => Readonly<Record<string, string>> | undefined,
  list: string,
  { full, short }: Naming = asTheyAre,
): Pick<ListFlag, 'texts' | 'change'> {
  const pairOf = (flag: string, text: string) => {
    const [registry = '', value = '', ...more] = text.split('=');
    if (registry !== '' && value !== '' && more.length === 0) return [registry, full(value)];
    throw new UsageError(`--${flag} is "${text}"; it must be REGISTRY=${list}`);
  };
  return {
    texts: (spec) => Object.entries(of(spec) ?? {}).map(([key, name]) => `${key}=${short(name)}`),
    change: (flag, added, gone) => {
      const given = added.filter((text) => text !== 'none').map((text) => pairOf(flag, text));
      return (spec) => {
        const now = of(spec) ?? {};
        const left = isNone(added) ? [] : changed(flag, Object.keys(now), [], gone);
        return Object.fromEntries([...left.map((each) => [each, now[each] ?? '']), ...given]);
      };
    },
  };
}

/** "none" alone takes all of a list back. */
function isNone(texts: readonly string[]): boolean {
  return texts.join() === 'none';
}

function changed(
  flag: string,
  now: readonly string[] = [],
  added: readonly string[],
  gone: readonly string[],
): string[] {
  const missing = gone.find((text) => !now.includes(text));
  if (missing !== undefined) {
    const known = now.length === 0 ? 'nothing is there' : `there is ${now.join(', ')}`;
    throw new UsageError(`--no-${flag} is "${missing}", which is not there; ${known}`);
  }
  if (isNone(added)) return [];
  return [...new Set([...now.filter((text) => !gone.includes(text)), ...added])];
}

/** What `--pool-priority` makes of the priorities of pools. Throws `UsageError`. */
function poolChanges(texts: readonly string[] | undefined): FieldChange[] {
  if (texts === undefined) return [];
  const at = 'pools';
  if (isNone(texts)) return [{ at, value: () => [] }];
  const byPool = new Map<string, string[]>();
  for (const text of texts) {
    const colon = text.indexOf(':');
    if (colon < 1) {
      const right = 'POOL:INTERFACE.STEP=NUMBER, or POOL:INTERFACE.STEP-';
      throw new UsageError(`--pool-priority is "${text}"; it must be ${right}`);
    }
    const pool = text.slice(0, colon);
    byPool.set(pool, [...(byPool.get(pool) ?? []), text.slice(colon + 1)]);
  }
  const changes = [...byPool].map(([pool, steps]) => {
    const added = steps.filter((text) => removedKey(text) === undefined);
    const removed = steps.flatMap((text) => removedKey(text) ?? []);
    return { pool, set: parsePriorities('--pool-priority', added), removed };
  });
  const value = ({ pools }: FleetSpec) => {
    const next = new Map(pools.map(({ pool, priorityOverrides }) => [pool, priorityOverrides]));
    for (const { pool, set, removed } of changes) {
      const kept = Object.entries(next.get(pool) ?? {}).filter(([step]) => !removed.includes(step));
      next.set(pool, { ...Object.fromEntries(kept), ...set });
    }
    return [...next]
      .filter(([, priorityOverrides]) => Object.keys(priorityOverrides).length > 0)
      .map(([pool, priorityOverrides]) => ({ pool, priorityOverrides }));
  };
  return [{ at, value }];
}
