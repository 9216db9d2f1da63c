/** Resource names ("hosts/h1") and the ids in them. */
import {
  asCredentialId,
  asPoolId,
  asTemplateId,
  asTokenId,
  type CredentialId,
  type HostId,
  invalidArgument,
  isChosenId,
  type PoolId,
  type RackId,
  type TemplateId,
  type TokenId,
} from '@rackwright/messages';
import { quote } from './violations.ts';

/** The ids in the names of each collection. */
interface IdOf {
  hosts: HostId;
  racks: RackId;
  credentials: CredentialId;
  templates: TemplateId;
  erasureCertificates: string;
  erasureDocuments: string;
  abandonedResources: string;
  discoveredMachines: string;
  expectedHosts: HostId;
  eventSinks: string;
  pools: PoolId;
  tokens: TokenId;
}

export type CollectionName = keyof IdOf;

/** Made by the server: "<host uid>-<number>", or the uid alone. */
const madeId = /^[A-Za-z0-9][A-Za-z0-9-]{0,126}$/;

const examples: Record<CollectionName, string> = {
  hosts: 'hosts/h1',
  racks: 'racks/r1',
  credentials: 'credentials/bmc-admin',
  templates: 'templates/set-clock',
  erasureCertificates: 'erasureCertificates/0f3c…-1',
  erasureDocuments: 'erasureDocuments/0f3c…-3-4-1-manifest',
  abandonedResources: 'abandonedResources/0f3c…',
  discoveredMachines: 'discoveredMachines/m-525400000001',
  expectedHosts: 'expectedHosts/h1',
  eventSinks: 'eventSinks/alerts',
  pools: 'pools/web',
  tokens: 'tokens/ci',
};

/** The id that a text is; undefined when it is none of the collection. */
const parsers: { readonly [C in CollectionName]: (text: string) => IdOf[C] | undefined } = {
  hosts: chosen,
  racks: chosen,
  credentials: (text) => (isChosenId(text) ? asCredentialId(text) : undefined),
  templates: (text) => (isChosenId(text) ? asTemplateId(text) : undefined),
  erasureCertificates: made,
  erasureDocuments: made,
  abandonedResources: made,
  discoveredMachines: made,
  expectedHosts: chosen,
  eventSinks: chosen,
  pools: (text) => (isChosenId(text) ? asPoolId(text) : undefined),
  tokens: (text) => (isChosenId(text) ? asTokenId(text) : undefined),
};

function chosen(text: string): string | undefined {
  return isChosenId(text) ? text : undefined;
}

function made(text: string): string | undefined {
  return madeId.test(text) ? text : undefined;
}

/** What is wrong with an id that a person chose; undefined when it is fine. */
export function idProblem(text: string): string | undefined {
  if (isChosenId(text)) return undefined;
  const wanted =
    'must have 1 to 63 characters of a-z, 0-9 and "-", begin with a letter and not end with "-"';
  return text === '' ? `is missing; it ${wanted}` : `is ${quote(text)}; it ${wanted}`;
}

/** The id in a resource name of `collection`; undefined when it is no such name. */
export function parseName<C extends CollectionName>(
  collection: C,
  name: string,
): IdOf[C] | undefined {
  const [first, second, ...rest] = name.split('/');
  if (first !== collection || second === undefined || rest.length > 0) return undefined;
  return parsers[collection](second);
}

/** What is wrong with a resource name; undefined when it is one of `collection`. */
export function nameProblem(collection: CollectionName, name: string): string | undefined {
  if (parseName(collection, name) !== undefined) return undefined;
  const wanted = `must name one of the ${collection}, as in ${quote(examples[collection])}`;
  return name === '' ? `is missing; it ${wanted}` : `is ${quote(name)}; it ${wanted}`;
}

/** The id in `name`. Throws `invalidArgument` that names `field`. */
export function requireName<C extends CollectionName>(
  collection: C,
  name: string,
  field = 'name',
): IdOf[C] {
  const found = parseName(collection, name);
  if (found !== undefined) return found;
  throw invalidArgument([{ field, description: nameProblem(collection, name) ?? '' }]);
}

/** R8: an unknown value is never taken for a known one. */
export function isKnown(values: Readonly<Record<string, number>>, value: number): boolean {
  return Object.values(values).includes(value);
}
