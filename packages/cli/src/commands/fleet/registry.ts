/** rackwright fleet registry …: the access to registries for images of hosts. */
import { clone, create } from '@bufbuild/protobuf';
import {
  type ImageMirror,
  ImageMirrorSchema,
  type ImageRegistry,
  ImageRegistrySchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { idArgument, parsePair, resourceName, type SharedFlags } from '../../flags.ts';
import { registryColumns } from '../../output/registry.ts';
import { sharedAliases as aliases, sharedFlags } from '../frame/frames.ts';
import { readSource } from '../template/source.ts';
import { listField, without } from './list-field.ts';

interface RegistryFlags extends SharedFlags {
  readonly credential?: string;
  readonly plainHttp?: boolean;
  readonly authority?: string;
  readonly tokenService?: string;
  readonly mirror?: readonly string[];
}

const registries = listField<ImageRegistry>({
  path: 'spec.registries',
  of: (spec) => spec.registries,
  as: (change) => ({ registries: change }),
  columns: registryColumns,
});

const positional = idArgument('registry', 'HOST or HOST:PORT, as references name it');

const setRegistry = buildCommand({
  docs: {
    brief: 'Set how a registry is asked for images of hosts; values that are not given stay',
    fullDescription:
      'Set how a registry is asked for images of hosts. Values that are not given stay; the word ' +
      'none clears one, and --no-plain-http restores TLS. A registry that is not named is asked ' +
      'by HTTPS, anonymously. Mirrors are asked before it, in the order ' +
      'given, for what is named by digest: HOST[:PORT][/PREFIX], and after commas plain-http, ' +
      'credential=ID, authority=FILE and token-service=HOST, as box.example:5000/cache,plain-http.',
  },
  parameters: {
    flags: {
      ...sharedFlags,
      credential: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Credential that it is shown; none clears it',
        placeholder: 'id',
      },
      plainHttp: {
        kind: 'boolean',
        optional: true,
        brief: 'Ask it without TLS',
      },
      authority: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'File with the certificates of its own authorities (PEM); none clears them',
        placeholder: 'file',
      },
      tokenService: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Host of its token service, which may be shown its credential; none clears it',
        placeholder: 'host',
      },
      mirror: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Mirror to be asked first; may be repeated, replaces all; none clears them',
        placeholder: 'mirror',
      },
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: RegistryFlags, registry: string) {
    const change = await changeOf(this.io, flags);
    await registries.change(this.io, flags, (now) => withChange(now, registry, change));
  },
});

/** The word that clears a value. */
const none = 'none';

type RegistryChange = Partial<Omit<ImageRegistry, '$typeName' | '$unknown' | 'registry'>>;

/** The list with one registry changed by the flags; its other fields stay, and so do the others. */
export function withChange(
  now: readonly ImageRegistry[],
  registry: string,
  change: RegistryChange,
): ImageRegistry[] {
  const before = now.find((each) => each.registry === registry);
  const wanted = clone(ImageRegistrySchema, before ?? create(ImageRegistrySchema, { registry }));
  return [...now.filter((each) => each !== before), Object.assign(wanted, change)];
}

/** The flags' meaning. Throws `UsageError`. */
export async function changeOf(
  io: CommandIo,
  {
    credential,
    plainHttp,
    authority,
    tokenService,
    mirror,
  }: Omit<RegistryFlags, keyof SharedFlags>,
): Promise<RegistryChange> {
  const named = mirror?.join() === none ? [] : mirror;
  const mirrors: ImageMirror[] = [];
  for (const text of named ?? []) mirrors.push(await mirrorOf(io, text));
  return {
    ...(plainHttp === undefined ? {} : { plainHttp }),
    ...(tokenService === undefined
      ? {}
      : { tokenService: tokenService === none ? '' : tokenService }),
    ...(named === undefined ? {} : { mirrors }),
    ...(credential === undefined
      ? {}
      : { credential: credential === none ? '' : resourceName('credentials', credential) }),
    ...(authority === undefined
      ? {}
      : { caPem: authority === none ? '' : await readSource(io, authority) }),
  };
}

/** "box.example:5000/cache,plain-http,credential=pull". Throws `UsageError`. */
async function mirrorOf(io: CommandIo, text: string): Promise<ImageMirror> {
  const [address = '', ...options] = text.split(',');
  const [, registry = '', prefix = ''] = /^([^/]+)(?:\/(.+))?$/.exec(address) ?? [];
  if (registry === '') {
    throw new UsageError(`--mirror is "${text}"; it must begin with HOST, HOST:PORT/PREFIX …`);
  }
  const mirror = create(ImageMirrorSchema, { registry, prefix });
  for (const option of options) {
    if (option === 'plain-http') {
      mirror.plainHttp = true;
      continue;
    }
    const [name, value] = option.includes('=') ? parsePair('--mirror', option) : [option, ''];
    if (name === 'credential') mirror.credential = resourceName('credentials', value);
    else if (name === 'authority') mirror.caPem = await readSource(io, value);
    else if (name === 'token-service') mirror.tokenService = value;
    else {
      const known = 'plain-http, credential=ID, authority=FILE and token-service=HOST';
      throw new UsageError(`--mirror knows no "${option}"; there are ${known}`);
    }
  }
  return mirror;
}

const removeRegistry = buildCommand({
  docs: { brief: 'Remove the settings of a registry' },
  parameters: { flags: sharedFlags, positional, aliases },
  async func(this: CliContext, flags: SharedFlags, registry: string) {
    const unknown = (names: readonly string[]): string => {
      const known = names.length === 0 ? 'nothing is there' : `there is ${names.join(', ')}`;
      return `nothing was said of the registry "${registry}"; ${known}`;
    };
    const left = (now: readonly ImageRegistry[]) =>
      without(now, (each) => each.registry, registry, unknown);
    await registries.change(this.io, flags, left);
  },
});

const listRegistries = buildCommand({
  docs: { brief: 'List the settings of registries' },
  parameters: { flags: sharedFlags, aliases },
  func(this: CliContext, flags: SharedFlags) {
    return registries.show(this.io, flags);
  },
});

/** `fleet registry …` */
export const registryRoutes = buildRouteMap({
  routes: { set: setRegistry, remove: removeRegistry, list: listRegistries },
  docs: { brief: 'How registries are asked for images of hosts' },
});
