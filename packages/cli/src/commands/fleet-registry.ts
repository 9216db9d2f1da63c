/** rackwright fleet registry …: how registries are asked for images of hosts. */
import { create } from '@bufbuild/protobuf';
import {
  type Fleet,
  FleetSchema,
  type ImageMirror,
  ImageMirrorSchema,
  type ImageRegistry,
  ImageRegistrySchema,
} from '@rackwright/api';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { UsageError } from '../failure.ts';
import { idArgument, parsePair, resourceName, type SharedFlags } from '../flags.ts';
import { registryColumns } from '../output/registry.ts';
import { printJson, printTable } from '../output/show.ts';
import type { CliContext, World } from '../world.ts';
import { type FleetClient, withFleet } from './fleet-client.ts';
import { sharedAliases as aliases, sharedFlags } from './frames.ts';
import { readSource } from './template-source.ts';

interface RegistryFlags extends SharedFlags {
  readonly credential?: string;
  readonly plainHttp: boolean;
  readonly authority?: string;
  readonly mirror?: readonly string[];
}

const positional = idArgument('registry', 'HOST or HOST:PORT, as references name it');

const setRegistry = buildCommand({
  docs: {
    brief: 'Say how a registry is asked for images of hosts, in place of what was said',
    fullDescription:
      'Say how a registry is asked for images of hosts, in place of what was said of it. One ' +
      'that is not named is asked by HTTPS, as nobody. Mirrors are asked before it, in the order ' +
      'given, for what is named by digest: HOST[:PORT][/PREFIX], and after commas plain-http, ' +
      'credential=ID and authority=FILE, as box.example:5000/cache,plain-http.',
  },
  parameters: {
    flags: {
      ...sharedFlags,
      credential: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Credential that it is shown',
        placeholder: 'id',
      },
      plainHttp: {
        kind: 'boolean',
        default: false,
        withNegated: false,
        brief: 'Ask it without TLS',
      },
      authority: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'File with the certificates of its own authorities (PEM)',
        placeholder: 'file',
      },
      mirror: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Mirror to be asked first; may be repeated',
        placeholder: 'mirror',
      },
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: RegistryFlags, registry: string) {
    const wanted = await registryOf(this.world, flags, registry);
    await change(this.world, flags, (now) => [
      ...now.filter((each) => each.registry !== registry),
      wanted,
    ]);
  },
});

async function registryOf(
  world: World,
  { credential, plainHttp, authority, mirror }: RegistryFlags,
  registry: string,
): Promise<ImageRegistry> {
  const mirrors: ImageMirror[] = [];
  for (const text of mirror ?? []) mirrors.push(await mirrorOf(world, text));
  return create(ImageRegistrySchema, {
    ...{ registry, plainHttp, mirrors },
    ...(credential === undefined ? {} : { credential: resourceName('credentials', credential) }),
    ...(authority === undefined ? {} : { caPem: await readSource(world, authority) }),
  });
}

/** "box.example:5000/cache,plain-http,credential=pull". Throws `UsageError`. */
async function mirrorOf(world: World, text: string): Promise<ImageMirror> {
  const [place = '', ...options] = text.split(',');
  const [, registry = '', prefix = ''] = /^([^/]+)(?:\/(.+))?$/.exec(place) ?? [];
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
    else if (name === 'authority') mirror.caPem = await readSource(world, value);
    else {
      const known = 'plain-http, credential=ID and authority=FILE';
      throw new UsageError(`--mirror knows no "${option}"; there are ${known}`);
    }
  }
  return mirror;
}

const removeRegistry = buildCommand({
  docs: { brief: 'Take back what was said of a registry' },
  parameters: { flags: sharedFlags, positional, aliases },
  async func(this: CliContext, flags: SharedFlags, registry: string) {
    await change(this.world, flags, (now) => {
      if (now.some((each) => each.registry === registry)) {
        return now.filter((each) => each.registry !== registry);
      }
      const names = now.map((each) => each.registry);
      const known = names.length === 0 ? 'nothing is there' : `there is ${names.join(', ')}`;
      throw new UsageError(`nothing was said of the registry "${registry}"; ${known}`);
    });
  },
});

const listRegistries = buildCommand({
  docs: { brief: 'List what was said of registries' },
  parameters: { flags: sharedFlags, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    show(this.world, flags, await withFleet(this.world, flags, (fleet) => fleet.getFleet({})));
  },
});

/** With its etag: what somebody else says meanwhile is not taken back. */
async function change(
  world: World,
  flags: SharedFlags,
  over: (now: readonly ImageRegistry[]) => ImageRegistry[],
): Promise<void> {
  const updateMask = { paths: ['spec.registries'] };
  const changed = await withFleet(world, flags, async (client: FleetClient) => {
    const { etag, spec } = await client.getFleet({});
    const registries = over(spec?.registries ?? []);
    return client.updateFleet({ fleet: { etag, spec: { registries } }, updateMask });
  });
  show(world, flags, changed);
}

function show(world: World, { output }: SharedFlags, fleet: Fleet): void {
  if (output === 'json') printJson(world, FleetSchema, fleet);
  else printTable(world, registryColumns, fleet.spec?.registries ?? []);
}

/** `fleet registry …` */
export const registryRoutes = buildRouteMap({
  routes: { set: setRegistry, remove: removeRegistry, list: listRegistries },
  docs: { brief: 'How registries are asked for images of hosts' },
});
