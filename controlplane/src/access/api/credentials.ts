/**
 * CredentialService: passwords are stored sealed and are never returned.
 *
 * Must not: log, return or keep a password.
 */
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  alreadyExists,
  type BoundService,
  bind,
  type CreateCredentialRequest,
  type Credential,
  type CredentialName,
  CredentialSchema,
  CredentialService,
  counted,
  failedPrecondition,
  invalidArgument,
  notFound,
  type RequestId,
  type UpdateCredentialRequest,
  unavailable,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type StoreRevision, storeKey } from '@rackwright/store';
import { maskPaths } from '../../call/field-mask.ts';
import { hostsBy } from '../../call/host-view.ts';
import { idProblem, nameProblem, requireName } from '../../call/names.ts';
import { listPage } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkEtag, etagMismatch, formatPosition } from '../../call/position.ts';
import { checkRequestId, controlCharacters } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { destinationProblem } from '../../host/api/destination.ts';
import { fleetKey } from '../../host/index.ts';
import { credentialsOfRegistries } from '../../images/index.ts';
import {
  deleteRecord,
  hasApplied,
  idOf,
  orUnavailable,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { networkProblem } from '../../secrets/index.ts';
import { isUnscoped } from '../index.ts';

const usernameCharsMax = 64;
const passwordCharsMax = 256;
const updatablePaths = ['username', 'password', 'bmc_networks', 'racks'];
/** The most networks, and racks, that one credential may name. */
const boundsMax = 64;
/** The most hosts that a refusal to delete their credential names. */
const hostsNamedMax = 5;

/** The service over these dependencies. */
export function createCredentialService(deps: RpcDependencies): BoundService {
  return bind(CredentialService, {
    createCredential: (request) => createCredential(deps, request),
    getCredential: async ({ name }) => {
      const { record, revision } = await existing(deps, name);
      return visiblePart(deps, present(deps, record, revision));
    },
    listCredentials: async (request) => {
      const page = await listPage(deps.store, 'credentials', request, '', ({ value, revision }) =>
        present(deps, fromBinary(wire.CredentialRecordSchema, value), revision),
      );
      const credentials = await Promise.all(page.items.map((each) => visiblePart(deps, each)));
      return { credentials, nextPageToken: page.nextPageToken };
    },
    updateCredential: (request) => updateCredential(deps, request),
    deleteCredential: (request) => deleteCredential(deps, request),
  });
}

async function existing(deps: RpcDependencies, name: string) {
  const kept = await readRecord(deps.store, wire.CredentialRecordSchema, credentialKey(name));
  if (kept === undefined) throw notFound(name);
  return kept;
}

/** Refuses while this replica lacks the sealing key: another replica may serve the call. */
function sealed(deps: RpcDependencies, name: string, version: bigint, password: string) {
  const { secrets } = deps.identity;
  if (secrets.canSeal) return secrets.seal(name, version, password);
  throw unavailable(
    'SECRETS_KEY_MISSING',
    `secrets key ${secrets.keyId} seals, and this control plane does not have it yet: its source ` +
      'must hold it. See `rackwright secrets show`.',
  );
}

function credentialKey(name: CredentialName): string {
  return storeKey('credentials', requireName('credentials', name));
}

function present(
  deps: RpcDependencies,
  record: wire.CredentialRecord,
  revision: StoreRevision,
): Credential {
  const { credential } = record;
  const shown =
    credential === undefined ? create(CredentialSchema) : clone(CredentialSchema, credential);
  shown.password = '';
  shown.etag = formatPosition(deps.store, revision);
  return shown;
}

/** Names no rack to a caller that does not see the rack: `store` shows what the caller sees. */
async function visiblePart(
  { store, principal }: RpcDependencies,
  credential: Credential,
): Promise<Credential> {
  if (isUnscoped(principal.scope)) return credential;
  const seen: string[] = [];
  for (const rack of credential.racks) {
    const found = await orUnavailable(store.get(storeKey(...rack.split('/'))));
    if (found.kind === 'found') seen.push(rack);
  }
  credential.racks = seen;
  return credential;
}

async function createCredential(
  deps: RpcDependencies,
  request: CreateCredentialRequest,
): Promise<Credential> {
  const { credentialId, requestId } = request;
  const given = request.credential ?? create(CredentialSchema);
  const violations = new Violations();
  violations.addIf('credential_id', idProblem(credentialId));
  checkRequestId(requestId, violations);
  if (given.name !== '') {
    violations.addIf('credential.name', nameProblem('credentials', given.name));
  }
  checkUsername(given.username, violations);
  checkPassword(given.password, violations);
  checkBounds(given, violations);
  violations.throwIfAny();
  const name = `credentials/${credentialId}`;
  const time = timestampFromMs(deps.clock.nowMs());
  // Higher than every version of a deleted credential of this name: no version exceeds the revision
  // at which it was written. Agents drop a version that is older than the one they have.
  const version = BigInt(await orUnavailable(deps.store.presentRevision())) + 1n;
  const record = create(wire.CredentialRecordSchema, {
    credential: {
      name,
      uid: randomId(deps.random),
      createTime: time,
      updateTime: time,
      username: given.username,
      version,
      bmcNetworks: [...given.bmcNetworks],
      racks: [...given.racks],
    },
    requestIds: withApplied([], requestId),
    ...sealed(deps, name, version, given.password),
  });
  const key = credentialKey(name);
  const made = await readRecord(deps.store, wire.CredentialRecordSchema, key);
  if (made !== undefined) return sameCredential(deps, made, requestId);
  if (request.validateOnly) return present(deps, record, 0);
  const written = await writeRecord(deps, wire.CredentialRecordSchema, key, record, 'absent');
  if (written.kind === 'conflict') {
    return sameCredential(deps, await existing(deps, name), requestId);
  }
  deps.log.info({ credential: name, actor: deps.actor }, 'credential created');
  return present(deps, record, written.revision);
}

/** The credential that an earlier try of the same request made; any other one is a conflict. */
function sameCredential(
  deps: RpcDependencies,
  { record, revision }: { record: wire.CredentialRecord; revision: StoreRevision },
  requestId: RequestId,
): Credential {
  if (!hasApplied(record, requestId)) {
    throw alreadyExists(`${record.credential?.name ?? ''} exists already.`);
  }
  return present(deps, record, revision);
}

async function updateCredential(
  deps: RpcDependencies,
  request: UpdateCredentialRequest,
): Promise<Credential> {
  const { credential: wanted } = request;
  if (wanted === undefined) {
    const description = 'is missing; give its name and what changes';
    throw invalidArgument([{ field: 'credential', description }]);
  }
  return untilWritten(wanted.name, () => changeCredential(deps, request, wanted));
}

/** Undefined when another change was written first. */
async function changeCredential(
  deps: RpcDependencies,
  request: UpdateCredentialRequest,
  wanted: Credential,
): Promise<Credential | undefined> {
  const { record, revision } = await existing(deps, wanted.name);
  checkEtag(deps.store, wanted.etag, revision, wanted.name);
  const violations = new Violations();
  const paths = maskPaths(CredentialSchema, request.updateMask, wanted, updatablePaths, violations);
  if (paths.includes('username')) checkUsername(wanted.username, violations);
  if (paths.includes('password')) checkPassword(wanted.password, violations);
  const next = clone(wire.CredentialRecordSchema, record);
  next.credential ??= create(CredentialSchema);
  if (paths.includes('bmc_networks')) next.credential.bmcNetworks = [...wanted.bmcNetworks];
  if (paths.includes('racks')) next.credential.racks = [...wanted.racks];
  checkBounds(next.credential, violations);
  violations.throwIfAny();
  await refuseOutside(deps, next.credential);
  if (paths.some((path) => path === 'username' || path === 'password')) {
    const version = next.credential.version + 1n;
    // Always sealed again: the authenticated data includes the version.
    const password = paths.includes('password')
      ? wanted.password
      : deps.identity.secrets.open(record).password;
    if (paths.includes('username')) next.credential.username = wanted.username;
    next.credential.version = version;
    Object.assign(next, sealed(deps, wanted.name, version, password));
  }
  next.credential.updateTime = timestampFromMs(deps.clock.nowMs());
  if (request.validateOnly) return present(deps, next, revision);
  const key = credentialKey(wanted.name);
  const written = await writeRecord(deps, wire.CredentialRecordSchema, key, next, revision);
  if (written.kind === 'conflict') return undefined;
  deps.log.info({ credential: wanted.name, actor: deps.actor }, 'credential changed');
  for (const hostId of await hostsWith(deps, wanted.name)) deps.hosts.wake(hostId);
  return present(deps, next, written.revision);
}

async function deleteCredential(
  deps: RpcDependencies,
  { name, etag }: { name: string; etag: string },
): Promise<Credential> {
  const { record, revision } = await existing(deps, name);
  checkEtag(deps.store, etag, revision, name);
  const hosts = await hostsWith(deps, name);
  if (hosts.length > 0) {
    const named = hosts.slice(0, hostsNamedMax).map((hostId) => `hosts/${hostId}`);
    const more = hosts.length > hostsNamedMax ? ', …' : '';
    throw failedPrecondition(
      'CREDENTIAL_IN_USE',
      `${name} is used by ${counted(hosts.length, 'host')}: ${named.join(', ')}${more}. ` +
        'Give them another credential first.',
    );
  }
  const registries = await registriesWith(deps, name);
  if (registries.length > 0) {
    const text = `${name} is shown to ${registries.join(', ')} by the fleet`;
    const drops = registries.map((registry) => ` --no-registry-credential ${registry}`).join('');
    const first = `Take it back first: \`rackwright fleet update${drops}\`.`;
    throw failedPrecondition('CREDENTIAL_IN_USE', `${text}. ${first}`);
  }
  const ofImages = await imageRegistriesWith(deps, name);
  if (ofImages.length > 0) {
    const text = `${name} is shown to ${ofImages.join(', ')} for images of hosts`;
    const set = `\`rackwright fleet registry set ${ofImages[0]} --credential ID\``;
    const first = `Name another one for it or its mirrors first: ${set}.`;
    throw failedPrecondition('CREDENTIAL_IN_USE', `${text}. ${first}`);
  }
  if (await isForTemplates(deps, name)) {
    const id = idOf(name);
    const drop = `rackwright fleet update --no-template-credential ${id}`;
    throw failedPrecondition(
      'CREDENTIAL_IN_USE',
      `${name} may be given to steps of templates. Take it back first: \`${drop}\`.`,
    );
  }
  const sinks = await sinksWith(deps, name);
  if (sinks.length > 0) {
    const text = `${name} signs what is sent to ${sinks.join(', ')}`;
    const set = `\`rackwright sink update ${idOf(sinks[0])} --credential ID\``;
    throw failedPrecondition('CREDENTIAL_IN_USE', `${text}. Name another one first: ${set}.`);
  }
  const gone = await deleteRecord(deps, credentialKey(name), revision);
  if (gone.kind === 'conflict') throw etagMismatch(name);
  deps.log.info({ credential: name, actor: deps.actor }, 'credential deleted');
  return present(deps, record, revision);
}

async function hostsWith(deps: RpcDependencies, credential: CredentialName): Promise<string[]> {
  return (await specsWith(deps, credential)).map(({ hostId }) => hostId);
}

async function specsWith(deps: RpcDependencies, credential: CredentialName) {
  const records = await hostsBy(deps, 'credential', credential);
  return records.flatMap(({ host }) =>
    host?.spec === undefined ? [] : [{ hostId: idOf(host.name), spec: host.spec }],
  );
}

/** The bounds of a credential must include every host that already uses it. */
async function refuseOutside(deps: RpcDependencies, credential: Credential): Promise<void> {
  if (credential.bmcNetworks.length + credential.racks.length === 0) return;
  const outside = (await specsWith(deps, credential.name)).flatMap(({ hostId, spec }) => {
    const found = destinationProblem(credential, spec);
    return found === undefined ? [] : [`hosts/${hostId} (${found.field} ${found.problem})`];
  });
  if (outside.length === 0) return;
  const more = outside.length > 1 ? ` and ${outside.length - 1} more` : '';
  throw failedPrecondition(
    'CREDENTIAL_IN_USE',
    `${credential.name} is had by ${outside[0]}${more}. Name their networks and racks as well, ` +
      'or give those hosts another credential first.',
  );
}

/** Checks the networks and racks to which the password may be sent. */
function checkBounds({ bmcNetworks, racks }: Credential, violations: Violations): void {
  const fields = { bmc_networks: bmcNetworks, racks } as const;
  for (const [field, items] of Object.entries(fields)) {
    if (items.length <= boundsMax) continue;
    violations.add(`credential.${field}`, `has ${items.length} entries; at most ${boundsMax} fit`);
    return;
  }
  for (const [index, network] of bmcNetworks.entries()) {
    violations.addIf(`credential.bmc_networks[${index}]`, networkProblem(network));
  }
  for (const [index, rack] of racks.entries()) {
    violations.addIf(`credential.racks[${index}]`, nameProblem('racks', rack));
  }
}

async function registriesWith(
  deps: RpcDependencies,
  credential: CredentialName,
): Promise<string[]> {
  const kept = await readRecord(deps.store, wire.FleetRecordSchema, fleetKey);
  const named = kept?.record.fleet?.spec?.templates?.registryCredentials ?? {};
  return Object.keys(named).filter((registry) => named[registry] === credential);
}

/** Image registries of hosts, and their mirrors, that use the credential. */
async function imageRegistriesWith(
  deps: RpcDependencies,
  credential: CredentialName,
): Promise<string[]> {
  const kept = await readRecord(deps.store, wire.FleetRecordSchema, fleetKey);
  return (kept?.record.fleet?.spec?.registries ?? [])
    .filter((registry) => credentialsOfRegistries([registry]).includes(credential))
    .map(({ registry }) => registry);
}

/** Event sinks that sign with the credential. */
async function sinksWith(
  { store }: RpcDependencies,
  credential: CredentialName,
): Promise<string[]> {
  const { entries } = await orUnavailable(store.list('eventSinks'));
  return entries.flatMap(({ value }) => {
    const sink = fromBinary(wire.EventSinkRecordSchema, value).eventSink;
    const { target } = sink?.spec ?? {};
    return target?.case === 'webhook' && target.value.credential === credential
      ? [sink?.name ?? '']
      : [];
  });
}

async function isForTemplates(deps: RpcDependencies, credential: CredentialName): Promise<boolean> {
  const kept = await readRecord(deps.store, wire.FleetRecordSchema, fleetKey);
  return kept?.record.fleet?.spec?.templates?.credentials.includes(credential) ?? false;
}

function checkUsername(username: string, violations: Violations): void {
  const fits = username.length > 0 && username.length <= usernameCharsMax;
  if (fits && !controlCharacters.test(username)) return;
  violations.add(
    'credential.username',
    `must have 1 to ${usernameCharsMax} characters without control characters`,
  );
}

/** The message reveals nothing of the password. */
function checkPassword(password: string, violations: Violations): void {
  const fits = password.length > 0 && password.length <= passwordCharsMax;
  if (fits && !controlCharacters.test(password)) return;
  violations.add(
    'credential.password',
    `must have 1 to ${passwordCharsMax} characters without control characters (a line break at ` +
      'its end, say)',
  );
}
