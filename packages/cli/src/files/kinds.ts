/**
 * The kinds of object that files may hold: the fields that a person sets of each, and its calls.
 */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import {
  CredentialSchema,
  ExpectedHostSchema,
  FleetSchema,
  HostSchema,
  type HostSpec,
  type ImageRegistry,
  PoolSchema,
  RackSchema,
  TemplateSchema,
  WorkflowSchema,
} from '@rackwright/messages';
import { allPages } from '../commands/frame/calls.ts';
import type { FileClients } from './clients.ts';
import { messageFrom, type PlainObject, plainOf } from './plain.ts';

export const kindNames = [
  'Rack',
  'Credential',
  'Fleet',
  'Template',
  'ExpectedHost',
  'Host',
  'Pool',
  'Workflow',
] as const;

export type KindName = (typeof kindNames)[number];

/** An object as the control plane has it. */
export interface ExistingObject {
  readonly name: string;
  readonly etag: string;
  /** The fields that a person sets. */
  readonly value: PlainObject;
}

/** A resource to write. */
export interface WantedResource {
  readonly name: string;
  readonly value: PlainObject;
  /** The password of a credential, when it is to be set. */
  readonly password?: string;
}

interface WriteOptions {
  readonly validateOnly: boolean;
  readonly requestId: string;
}

/** A reference from one object to another: the field that has it, as violations name fields. */
export interface ObjectReference {
  readonly field: string;
  readonly name: string;
}

export interface ObjectKind {
  readonly name: KindName;
  /**
   * The word in `get hosts`, and the first segment of names; the fleet has no other than "fleet".
   */
  readonly collection: string;
  readonly schema: DescMessage;
  /** Fields that a person gives, by their names in JSON. */
  readonly fields: readonly string[];
  references(wanted: WantedResource): readonly ObjectReference[];
  list(clients: FileClients): Promise<ExistingObject[]>;
  get(clients: FileClients, name: string): Promise<ExistingObject>;
  create(clients: FileClients, wanted: WantedResource, options: WriteOptions): Promise<unknown>;
  update(
    clients: FileClients,
    wanted: WantedResource,
    etag: string,
    options: WriteOptions,
  ): Promise<unknown>;
}

/** In the order in which they are made: a resource that others name comes first. */
export const kinds: readonly ObjectKind[] = [
  kindOf(RackSchema, {
    name: 'Rack',
    collection: 'racks',
    fields: ['labels', 'spec'],
    list: ({ racks }) =>
      allPages(
        (pageToken) => racks.listRacks({ pageToken }),
        (page) => page.racks,
      ),
    get: ({ racks }, name) => racks.getRack({ name }),
    create: ({ racks }, rack, id, options) => racks.createRack({ rackId: id, rack, ...options }),
    update: ({ racks }, rack, { validateOnly }) =>
      racks.updateRack({ rack, updateMask, validateOnly }),
  }),
  credentialKind(),
  kindOf(FleetSchema, {
    name: 'Fleet',
    collection: 'fleet',
    fields: ['spec'],
    references: ({ spec }) => [
      ...Object.values(spec?.templates?.registryCredentials ?? {}).map((name) => ({
        field: 'fleet.spec.templates.registry_credentials',
        name,
      })),
      ...(spec?.templates?.credentials ?? []).map((name) => ({
        field: 'fleet.spec.templates.credentials',
        name,
      })),
      ...registryReferences(spec?.registries ?? []),
    ],
    list: async ({ fleet }) => [await fleet.getFleet({})],
    get: ({ fleet }) => fleet.getFleet({}),
    // There always is one; it is never made.
    create: ({ fleet }, wanted, _id, { validateOnly }) =>
      fleet.updateFleet({ fleet: wanted, updateMask, validateOnly }),
    update: ({ fleet }, wanted, { validateOnly }) =>
      fleet.updateFleet({ fleet: wanted, updateMask, validateOnly }),
  }),
  kindOf(TemplateSchema, {
    name: 'Template',
    collection: 'templates',
    fields: ['labels', 'source'],
    list: async ({ templates }) => {
      const all = await allPages(
        (pageToken) => templates.listTemplates({ pageToken }),
        (page) => page.templates,
      );
      // Built-in resources cannot be written.
      return all.filter(({ builtIn }) => !builtIn);
    },
    get: ({ templates }, name) => templates.getTemplate({ name }),
    create: ({ templates }, template, templateId, options) =>
      templates.createTemplate({ templateId, template, ...options }),
    update: ({ templates }, template, options) =>
      templates.updateTemplate({ template, updateMask, ...options }),
  }),
  kindOf(ExpectedHostSchema, {
    name: 'ExpectedHost',
    collection: 'expectedHosts',
    fields: ['match', 'labels', 'spec'],
    references: ({ spec }) => hostReferences('expected_host.spec', spec),
    list: ({ discovery }) =>
      allPages(
        (pageToken) => discovery.listExpectedHosts({ pageToken }),
        (page) => page.expectedHosts,
      ),
    get: ({ discovery }, name) => discovery.getExpectedHost({ name }),
    create: ({ discovery }, expectedHost, expectedHostId, options) =>
      discovery.createExpectedHost({ expectedHostId, expectedHost, ...options }),
    update: ({ discovery }, expectedHost, { validateOnly }) =>
      discovery.updateExpectedHost({ expectedHost, updateMask, validateOnly }),
  }),
  kindOf(HostSchema, {
    name: 'Host',
    collection: 'hosts',
    fields: ['labels', 'spec'],
    references: ({ spec }) => hostReferences('host.spec', spec),
    list: ({ hosts }) =>
      allPages(
        (pageToken) => hosts.listHosts({ pageToken }),
        (page) => page.hosts,
      ),
    get: ({ hosts }, name) => hosts.getHost({ name }),
    create: ({ hosts }, host, hostId, options) => hosts.createHost({ hostId, host, ...options }),
    update: ({ hosts }, host, options) => hosts.updateHost({ host, updateMask, ...options }),
  }),
  kindOf(PoolSchema, {
    name: 'Pool',
    collection: 'pools',
    fields: ['labels', 'spec'],
    list: ({ pools }) =>
      allPages(
        (pageToken) => pools.listPools({ pageToken }),
        (page) => page.pools,
      ),
    get: ({ pools }, name) => pools.getPool({ name }),
    create: ({ pools }, pool, poolId, options) => pools.createPool({ poolId, pool, ...options }),
    update: ({ pools }, pool, options) => pools.updatePool({ pool, updateMask, ...options }),
  }),
  kindOf(WorkflowSchema, {
    name: 'Workflow',
    collection: 'workflows',
    fields: ['spec'],
    references: ({ name }) => {
      const [, host = '', , template = ''] = name.split('/');
      return [
        { field: 'parent', name: `hosts/${host}` },
        { field: 'workflow_id', name: `templates/${template}` },
      ];
    },
    list: ({ workflows }) =>
      allPages(
        (pageToken) => workflows.listWorkflows({ parent: 'hosts/-', pageToken }),
        (page) => page.workflows,
      ),
    get: ({ workflows }, name) => workflows.getWorkflow({ name }),
    create: ({ workflows }, workflow, workflowId, options) => {
      const parent = workflow.name.split('/').slice(0, 2).join('/');
      return workflows.createWorkflow({ parent, workflowId, workflow, ...options });
    },
    update: ({ workflows }, workflow, options) =>
      workflows.updateWorkflow({ workflow, updateMask, ...options }),
  }),
];

/** A field that a file leaves out is unset: a file has all fields of a person's choice. */
const updateMask = { paths: ['*'] };

/** The kind of objects with such a name. */
export function kindNamed(name: string): ObjectKind | undefined {
  return kinds.find((kind) => kind.name === name);
}

/** "hosts/h1" of "h1"; names with more than an id are left as they are. */
export function fullName(kind: ObjectKind, given: string): string {
  if (kind.name === 'Fleet' || given.includes('/')) return given;
  return kind.name === 'Workflow' ? given : `${kind.collection}/${given}`;
}

/** The pattern of the kind's names. */
export function nameShape(kind: ObjectKind): RegExp {
  if (kind.name === 'Fleet') return /^fleet$/;
  const id = '[a-z][a-z0-9-]{0,62}';
  if (kind.name === 'Workflow') return new RegExp(`^hosts/${id}/workflows/${id}$`);
  return new RegExp(`^${kind.collection}/${id}$`);
}

interface Resource {
  readonly name: string;
  readonly etag: string;
}

interface KindParts<D extends DescMessage> {
  readonly name: KindName;
  readonly collection: string;
  readonly fields: readonly string[];
  references?(message: MessageShape<D>): readonly ObjectReference[];
  list(clients: FileClients): Promise<(MessageShape<D> & Resource)[]>;
  get(clients: FileClients, name: string): Promise<MessageShape<D> & Resource>;
  create(
    clients: FileClients,
    message: MessageShape<D>,
    id: string,
    options: WriteOptions,
  ): Promise<unknown>;
  update(clients: FileClients, message: MessageShape<D>, options: WriteOptions): Promise<unknown>;
}

function kindOf<D extends DescMessage>(schema: D, parts: KindParts<D>): ObjectKind {
  const { name, collection, fields } = parts;
  const existing = (message: MessageShape<D> & Resource): ExistingObject => {
    const { name: own, etag } = message;
    return { name: own, etag, value: plainOf(schema, message, fields) };
  };
  return {
    name,
    collection,
    schema,
    fields,
    references: (wanted) => parts.references?.(messageOf(schema, wanted)) ?? [],
    list: async (clients) => (await parts.list(clients)).map(existing),
    get: async (clients, of) => existing(await parts.get(clients, of)),
    create: (clients, wanted, options) =>
      parts.create(
        clients,
        messageOf(schema, wanted),
        wanted.name.split('/').at(-1) ?? '',
        options,
      ),
    update: (clients, wanted, etag, options) =>
      parts.update(clients, messageOf(schema, wanted, etag), options),
  };
}

/** The message to send. Throws for values that do not fit. */
export function messageOf<D extends DescMessage>(
  schema: D,
  { name, value }: WantedResource,
  etag = '',
): MessageShape<D> {
  return messageFrom(schema, { ...value, name, ...(etag === '' ? {} : { etag }) });
}

/** Its password is never read, and written only when it is given. */
function credentialKind(): ObjectKind {
  const fields = ['username', 'bmcNetworks', 'racks'];
  const plain = kindOf(CredentialSchema, {
    name: 'Credential',
    collection: 'credentials',
    fields,
    list: ({ credentials }) =>
      allPages(
        (pageToken) => credentials.listCredentials({ pageToken }),
        (page) => page.credentials,
      ),
    get: ({ credentials }, name) => credentials.getCredential({ name }),
    create: () => Promise.reject(new Error('a credential is made with its password')),
    update: () => Promise.reject(new Error('a credential is changed with its password')),
  });
  return {
    ...plain,
    create: ({ credentials }, wanted, options) => {
      const { password = '' } = wanted;
      const credential = { ...messageOf(CredentialSchema, wanted), password };
      const credentialId = wanted.name.split('/').at(-1) ?? '';
      return credentials.createCredential({ credentialId, credential, ...options });
    },
    update: ({ credentials }, wanted, etag, { validateOnly }) => {
      const { password } = wanted;
      const plainly = ['username', 'bmc_networks', 'racks'];
      const paths = password === undefined ? plainly : [...plainly, 'password'];
      const credential = { ...messageOf(CredentialSchema, wanted, etag), password: password ?? '' };
      return credentials.updateCredential({ credential, updateMask: { paths }, validateOnly });
    },
  };
}

function hostReferences(path: string, spec: HostSpec | undefined): readonly ObjectReference[] {
  return [
    { field: `${path}.rack`, name: spec?.rack ?? '' },
    { field: `${path}.bmc.credential`, name: spec?.bmc?.credential ?? '' },
  ];
}

function registryReferences(registries: readonly ImageRegistry[]): readonly ObjectReference[] {
  return registries.flatMap(({ credential, mirrors }, index) => {
    const field = `fleet.spec.registries[${index}]`;
    const own = { field: `${field}.credential`, name: credential };
    return [
      own,
      ...mirrors.map((mirror) => ({ field: `${field}.mirrors`, name: mirror.credential })),
    ];
  });
}
