/**
 * rackwright token …, rackwright whoami
 *
 * Must not: print a secret anywhere but on standard output, nor twice.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AccessService,
  CreateTokenResponseSchema,
  counted,
  EndSessionsResponseSchema,
  ListTokensResponseSchema,
  Role,
  type Scope,
  type Token,
  TokenSchema,
  WhoAmIResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  requestFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { enumName } from '../../output/enum-name.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago, instant, parseDuration } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;
const positional = idArgument('token', 'Id of the token');
const roles = { viewer: Role.VIEWER, operator: Role.OPERATOR, admin: Role.ADMIN } as const;

const withAccess = callsOf(AccessService);

interface CreateFlags extends SharedFlags {
  readonly role: keyof typeof roles;
  readonly expires: string;
  readonly rack?: readonly string[];
  readonly pool?: readonly string[];
  readonly purpose: string;
  readonly requestId: string;
}

const createToken = buildCommand({
  docs: {
    brief: 'Make a token; it is shown now and never again',
    fullDescription:
      'A viewer reads; an operator asks of hosts, workflows and templates; an admin also changes ' +
      'racks, credentials, tokens and what holds for the fleet. With --rack or --pool the token ' +
      'sees and changes only what is there. Only the token itself goes to standard output.',
  },
  parameters: {
    flags: {
      ...shared,
      role: { kind: 'enum', values: ['viewer', 'operator', 'admin'], brief: 'What it may do' },
      expires: {
        kind: 'parsed',
        parse: String,
        brief: 'How long it is valid, as 12h or 90d; at most 400d',
        placeholder: 'duration',
      },
      rack: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        brief: 'Only in this rack; may be repeated',
        placeholder: 'rack',
      },
      pool: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        brief: 'Only for hosts with this label "pool", which no pool sets; may be repeated',
        placeholder: 'pool',
      },
      purpose: {
        kind: 'parsed',
        parse: String,
        default: '',
        brief: 'What it is for, one line',
        placeholder: 'text',
      },
      ...requestFlag,
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: CreateFlags, tokenId: string) {
    const { io } = this;
    const { requestId, purpose } = flags;
    const lifeMs = parseDuration(flags.expires);
    if (lifeMs === undefined) {
      const wanted = 'it must be a duration as 12h or 90d';
      throw new UsageError(`--expires is "${flags.expires}"; ${wanted}`);
    }
    const racks = (flags.rack ?? []).map((id) => resourceName('racks', id));
    const token = {
      role: roles[flags.role],
      expireTime: timestampFromMs(io.clock.nowMs() + lifeMs),
      scope: { racks, pools: [...(flags.pool ?? [])] },
      purpose,
    };
    const made = await withAccess(io, flags, (access) =>
      access.createToken({ tokenId, token, requestId }),
    );
    if (isForPrograms(flags.output)) {
      printAs(io, flags.output, CreateTokenResponseSchema, made);
      return;
    }
    printLines(io, [made.secret]);
    const until = instant(made.token?.expireTime);
    const scope = scopeText(made.token?.scope);
    io.err.write(`${flags.role} for ${scope}, until ${until}. It is shown only now.\n`);
  },
});

const listTokens = buildCommand({
  docs: { brief: 'List tokens, their roles and scopes, and when they were used last' },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const tokens = await withAccess(this.io, flags, (access) =>
      allPages(
        (pageToken) => access.listTokens({ pageToken }),
        (page) => page.tokens,
      ),
    );
    if (isForPrograms(flags.output)) {
      const answer = create(ListTokensResponseSchema, { tokens });
      printAs(this.io, flags.output, ListTokensResponseSchema, answer);
      return;
    }
    printTable(this.io, flags.output, columns(this.io), tokens);
    for (const { name, warning } of tokens) {
      if (warning !== '') this.io.err.write(`${name} ${warning}.\n`);
    }
  },
});

function columns({ clock }: CommandIo): TextColumn<Token>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'ROLE', value: ({ role }) => enumName('Role', role) },
    { title: 'SCOPE', value: ({ scope }) => scopeText(scope), widthMin: 10 },
    { title: 'EXPIRES', value: ({ expireTime }) => ago(clock, expireTime) || 'never' },
    { title: 'LAST USED', value: (each) => ago(clock, each.lastUsedTime), dropOrder: 3 },
    { title: 'BY', value: ({ createdBy }) => createdBy, dropOrder: 2 },
    { title: 'PURPOSE', value: ({ purpose }) => purpose, widthMin: 8, dropOrder: 1 },
  ];
}

const reasonFlag = {
  kind: 'parsed',
  parse: String,
  default: '',
  brief: 'Why, for the audit stream',
  placeholder: 'why',
} as const;

const deleteToken = buildCommand({
  docs: { brief: 'Revoke a token: calls with it are refused, and its open streams end' },
  parameters: {
    flags: { ...shared, reason: reasonFlag },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { reason: string }, id: string) {
    const name = resourceName('tokens', id);
    const { reason } = flags;
    const gone = await withAccess(this.io, flags, (access) => access.deleteToken({ name, reason }));
    if (isForPrograms(flags.output)) printAs(this.io, flags.output, TokenSchema, gone);
    else printLines(this.io, [`${name} revoked`]);
  },
});

const endSessions = buildCommand({
  docs: {
    brief: 'Sign somebody out of the web console, in every browser',
    fullDescription:
      'Signs somebody out of the web console, in every browser. Take the role away at the ' +
      'identity provider first, or delete the token: who still has one may sign in again.',
  },
  parameters: {
    flags: { ...shared, reason: reasonFlag },
    positional: idArgument('actor', 'Who, as `audit list` names them: "oidc:ann", "token:ci"'),
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { reason: string }, actor: string) {
    const { reason } = flags;
    const answer = await withAccess(this.io, flags, (access) =>
      access.endSessions({ actor, reason }),
    );
    if (isForPrograms(flags.output)) {
      printAs(this.io, flags.output, EndSessionsResponseSchema, answer);
    } else {
      const ended = counted(answer.ended, 'sign-in');
      printLines(this.io, [`${actor} was signed out of ${ended}`]);
    }
  },
});

/** `rackwright whoami`. */
export const whoAmI = buildCommand({
  docs: { brief: briefs.whoami },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const caller = await withAccess(this.io, flags, (access) => access.whoAmI({}));
    if (isForPrograms(flags.output)) {
      printAs(this.io, flags.output, WhoAmIResponseSchema, caller);
      return;
    }
    const { clock } = this.io;
    const { expireTime, token, issuer } = caller;
    const until = `${instant(expireTime)} (${ago(clock, expireTime)})`;
    printFields(this.io, [
      ['name', caller.actor],
      ['role', enumName('Role', caller.role)],
      ['scope', scopeText(caller.scope)],
      [token === '' ? 'identity provider' : 'token', token === '' ? issuer : token],
      ['expires', expireTime === undefined ? 'never' : until],
    ]);
  },
});

/** All commands on tokens. */
export const tokenRoutes = buildRouteMap({
  routes: {
    create: createToken,
    list: listTokens,
    delete: deleteToken,
    'end-sessions': endSessions,
  },
  docs: { brief: briefs.token },
});

function scopeText(scope: Scope | undefined): string {
  const { racks = [], pools = [] } = scope ?? {};
  const words = [...racks, ...pools.map((pool) => `pool ${pool}`)];
  return words.length === 0 ? 'everything' : words.join(', ');
}
