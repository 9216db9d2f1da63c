/**
 * rackwright credential …
 *
 * Must not: take a password as an argument or from the environment, where others can read it.
 */
import {
  type Credential,
  CredentialSchema,
  CredentialService,
  ListCredentialsResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { idArgument, requestFlag, resourceName, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago, instant } from '../../output/time.ts';
import { readPassword } from '../../password.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import {
  sharedAliases as aliases,
  listCommand,
  oneCommand,
  sharedFlags as shared,
  showGone,
} from '../frame/frames.ts';

const argument = ['credential', 'Id of the credential'] as const;
const positional = idArgument(...argument);
const passwordFile = {
  kind: 'parsed',
  parse: String,
  optional: true,
  brief: 'File with the password; without it, standard input or a question',
  placeholder: 'file',
} as const;

/** The networks and racks to which a credential may be sent. */
const boundFlags = {
  bmcNetwork: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief:
      'Network of BMCs, as 10.0.8.0/24; give all of them, or "none". It goes to no BMC ' +
      'elsewhere; without any, only an administrator says to which BMCs',
    placeholder: 'network',
  },
  rack: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'Rack whose hosts may have it; give all of them, or "none" for every rack',
    placeholder: 'rack',
  },
} as const;

interface BoundFlags {
  readonly bmcNetwork?: readonly string[];
  readonly rack?: readonly string[];
}

/** The bounds in the flags, and the paths of the fields that they set. */
function boundsOf({ bmcNetwork, rack }: BoundFlags) {
  const given = (all: readonly string[] = []) => (all.join() === 'none' ? [] : [...all]);
  const paths = [
    ...(bmcNetwork === undefined ? [] : ['bmc_networks']),
    ...(rack === undefined ? [] : ['racks']),
  ];
  const racks = given(rack).map((id) => resourceName('racks', id));
  return { bounds: { bmcNetworks: given(bmcNetwork), racks }, paths };
}

const withCredentials = callsOf(CredentialService);

const createCredential = buildCommand({
  docs: { brief: 'Keep user name and password of BMCs; the password is asked for, or piped in' },
  parameters: {
    flags: {
      ...shared,
      username: { kind: 'parsed', parse: String, brief: 'User name' },
      passwordFile,
      ...boundFlags,
      ...requestFlag,
    },
    positional,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags &
      BoundFlags & { username: string; passwordFile?: string; requestId: string },
    credentialId: string,
  ) {
    const questions = [`Password of ${flags.username}: `, 'The same again: '];
    const password = await readPassword(this.io, flags.passwordFile, questions);
    const credential = { username: flags.username, password, ...boundsOf(flags).bounds };
    const made = await withCredentials(this.io, flags, (credentials) =>
      credentials.createCredential({ credentialId, credential, requestId: flags.requestId }),
    );
    show(this.io, flags, made);
  },
});

const updateCredential = buildCommand({
  docs: { brief: 'Change user name, password or where it may go' },
  parameters: {
    flags: {
      ...shared,
      username: { kind: 'parsed', parse: String, optional: true, brief: 'New user name' },
      passwordFile,
      keepPassword: { kind: 'boolean', default: false, brief: 'Change anything but the password' },
      ...boundFlags,
    },
    positional,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags &
      BoundFlags & { username?: string; passwordFile?: string; keepPassword: boolean },
    id: string,
  ) {
    const { username = '', keepPassword } = flags;
    const password = keepPassword
      ? ''
      : await readPassword(this.io, flags.passwordFile, ['New password: ']);
    const { bounds, paths: bounded } = boundsOf(flags);
    const paths = [
      ...(keepPassword ? [] : ['password']),
      ...(username === '' ? [] : ['username']),
      ...bounded,
    ];
    if (paths.length === 0) {
      throw new UsageError('nothing to change: give --username, --bmc-network or --rack');
    }
    const credential = { name: resourceName('credentials', id), username, password, ...bounds };
    const updated = await withCredentials(this.io, flags, (credentials) =>
      credentials.updateCredential({ credential, updateMask: { paths } }),
    );
    show(this.io, flags, updated);
  },
});

const listCredentials = listCommand({
  brief: 'List credentials, without their passwords',
  read: (io, flags) =>
    withCredentials(io, flags, (service) =>
      allPages(
        (pageToken) => service.listCredentials({ pageToken }),
        (page) => page.credentials,
      ),
    ),
  schema: ListCredentialsResponseSchema,
  answer: (credentials) => ({ credentials }),
  columns,
});

const deleteCredential = oneCommand({
  brief: 'Remove a credential that no host uses',
  collection: 'credentials',
  argument,
  call: (io, flags, name) =>
    withCredentials(io, flags, (credentials) => credentials.deleteCredential({ name })),
  show: showGone(CredentialSchema, 'deleted'),
});

/** All commands on credentials. */
export const credentialRoutes = buildRouteMap({
  routes: {
    create: createCredential,
    update: updateCredential,
    list: listCredentials,
    delete: deleteCredential,
  },
  docs: { brief: briefs.credential },
});

function show(io: CommandIo, { output }: SharedFlags, credential: Credential): void {
  if (isForPrograms(output)) {
    printAs(io, output, CredentialSchema, credential);
    return;
  }
  printFields(io, [
    ['name', credential.name],
    ['user name', credential.username],
    ['BMCs in', credential.bmcNetworks.join(', ') || 'any network, as an administrator says'],
    ['racks', credential.racks.join(', ') || 'all'],
    ['version', String(credential.version)],
    ['changed', instant(credential.updateTime)],
  ]);
}

function columns({ clock }: CommandIo): TextColumn<Credential>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'USER NAME', value: ({ username }) => username, widthMin: 10 },
    { title: 'BMCS IN', value: ({ bmcNetworks }) => bmcNetworks.join(' ') || 'any', dropOrder: 3 },
    { title: 'VERSION', value: ({ version }) => String(version), dropOrder: 1 },
    { title: 'CHANGED', value: ({ updateTime }) => ago(clock, updateTime), dropOrder: 2 },
  ];
}
