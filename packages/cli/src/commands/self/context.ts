/** rackwright context …: control planes by name. */
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  type ConfigChange,
  type ContextSettings,
  changeConfig,
  checkContextName,
  readConfig,
} from '../../config-file.ts';
import { UsageError } from '../../failure.ts';
import { connectionFlags, outputFlag, textFlag } from '../../flags.ts';
import { signInPath } from '../../login/kept-sign-in.ts';
import type { OutputKind } from '../../output/kinds.ts';
import { loginFlags, loginFrom } from './login.ts';

const { config } = connectionFlags;
const named = {
  kind: 'tuple',
  parameters: [
    {
      parse: String,
      brief: 'Name of the context',
      placeholder: 'context',
      proposeCompletions: proposeContexts,
    },
  ],
} as const;

interface FileFlags {
  readonly config?: string;
}

interface Line extends ContextSettings {
  readonly name: string;
  readonly isCurrent: boolean;
}

const listContexts = buildCommand({
  docs: { brief: 'List contexts; * is in use' },
  parameters: { flags: { config, ...outputFlag }, aliases: { o: 'output' } },
  async func(this: CliContext, flags: FileFlags & { output: OutputKind }) {
    const { isForPrograms, printLines, printTable, printValue } = await import(
      '../../output/show.ts'
    );
    const { io } = this;
    const { contexts, current } = await readConfig(io, flags);
    const lines = Object.entries(contexts).map(
      ([name, settings]): Line => ({ ...settings, name, isCurrent: name === current }),
    );
    const { output } = flags;
    if (output === 'name') {
      printLines(
        io,
        lines.map(({ name }) => name),
      );
    } else if (isForPrograms(output)) printValue(io, output, lines.map(plainOf));
    else printTable(io, output, columns, lines);
  },
});

function plainOf({ login, ...line }: Line) {
  return { ...line, ...(login === undefined ? {} : { login: { ...login } }) };
}

const columns = [
  { title: 'IN USE', value: ({ isCurrent }: Line) => (isCurrent ? '*' : '') },
  { title: 'NAME', value: ({ name }: Line) => name },
  { title: 'SERVER', value: ({ server }: Line) => server ?? '', widthMin: 12 },
  {
    title: 'SIGN-IN',
    value: ({ login, tokenFile }: Line) => login?.issuer ?? tokenFile ?? '',
    widthMin: 12,
  },
  { title: 'CA FILE', value: ({ caFile }: Line) => caFile ?? '', dropOrder: 1 },
];

const useContext = buildCommand({
  docs: { brief: 'Use a context from now on' },
  parameters: { flags: { config }, positional: named },
  async func(this: CliContext, flags: FileFlags, name: string) {
    await checkKnown(this.io, flags, name);
    await changeConfig(this.io, flags, [{ at: ['current'], value: name }]);
    this.io.err.write(`${name} is in use\n`);
  },
});

interface SetFlags extends FileFlags {
  readonly server?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly issuer?: string;
  readonly clientId?: string;
  readonly scope?: string;
  readonly issuerCaFile?: string;
  readonly accessToken?: boolean;
}

const setContext = buildCommand({
  docs: {
    brief: 'Make or change a context; values that are not given stay',
    fullDescription:
      'Make or change a context; values that are not given stay. The first one is used at once. ' +
      'Files are named, not copied.',
  },
  parameters: {
    flags: {
      config,
      server: textFlag('Control plane, HOST:PORT', 'host:port'),
      tokenFile: textFlag('File with the token', 'file'),
      caFile: textFlag('File with the CA certificate (ca.pem)', 'file'),
      ...loginFlags,
    },
    positional: named,
  },
  async func(this: CliContext, flags: SetFlags, name: string) {
    const { io } = this;
    checkContextName(name);
    const { contexts, current } = await readConfig(io, flags, 'mayLack');
    const at = ['contexts', name];
    const { server, tokenFile, caFile, issuer, clientId } = flags;
    if (server !== undefined && !/^\S+:\d+$/.test(server)) {
      throw new UsageError(`--server is "${server}"; it must be HOST:PORT`);
    }
    const texts = Object.entries({ server, tokenFile, caFile }).filter(([, value]) => value);
    const changes: ConfigChange[] = texts.map(([key, value]) => ({ at: [...at, key], value }));
    if (issuer !== undefined || clientId !== undefined) {
      const before = Object.hasOwn(contexts, name) ? contexts[name]?.login : undefined;
      changes.push({ at: [...at, 'login'], value: loginFrom(flags, before) });
    }
    if (changes.length === 0) {
      throw new UsageError('nothing to set: give --server, --token-file, --ca-file or --issuer');
    }
    if (current === undefined) changes.push({ at: ['current'], value: name });
    await changeConfig(io, flags, changes);
    io.err.write(`${name} is set${current === undefined ? ', and in use' : ''}\n`);
  },
});

const deleteContext = buildCommand({
  docs: { brief: 'Remove a context, and its sign-in' },
  parameters: { flags: { config }, positional: named },
  async func(this: CliContext, flags: FileFlags, name: string) {
    const { io } = this;
    const { current } = await checkKnown(io, flags, name);
    const changes: ConfigChange[] = [{ at: ['contexts', name], value: undefined }];
    if (current === name) changes.push({ at: ['current'], value: undefined });
    await changeConfig(io, flags, changes);
    await io.removeFile(signInPath(io, name));
    io.err.write(`${name} is removed${current === name ? '; none is in use' : ''}\n`);
  },
});

async function checkKnown(io: CommandIo, flags: FileFlags, name: string) {
  const file = await readConfig(io, flags);
  if (Object.hasOwn(file.contexts, name)) return file;
  const known = Object.keys(file.contexts).join(', ') || 'none';
  throw new UsageError(`there is no context "${name}"; known: ${known}`);
}

async function proposeContexts(this: CliContext, partial: string): Promise<string[]> {
  const { contexts } = await readConfig(this.io, {});
  return Object.keys(contexts).filter((name) => name.startsWith(partial));
}

/** All commands on contexts. */
export const contextRoutes = buildRouteMap({
  routes: { list: listContexts, use: useContext, set: setContext, delete: deleteContext },
  docs: { brief: briefs.context },
});
