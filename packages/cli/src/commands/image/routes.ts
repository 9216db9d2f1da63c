/** rackwright image … */
import { create } from '@bufbuild/protobuf';
import {
  counted,
  ListPrefetchedImagesResponseSchema,
  type PrefetchedImage,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { exitCodes, NotAllDone, UsageError } from '../../failure.ts';
import { describeFailure } from '../../failure-text.ts';
import { requestFlag, resourceName, type SharedFlags } from '../../flags.ts';
import { prefetchedColumns } from '../../output/prefetched.ts';
import { isForPrograms, printAs, printTable } from '../../output/show.ts';
import { sharedAliases as aliases, sharedFlags } from '../frame/frames.ts';
import { withPools } from '../pool/client.ts';
import { withRacks } from '../rack/client.ts';
import { pushImage } from './push.ts';

const rackFlag = {
  kind: 'parsed',
  parse: String,
  brief: 'Id of the rack',
  placeholder: 'id',
} as const;

interface PrefetchFlags extends SharedFlags {
  readonly rack?: string;
  readonly pool?: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly netboot: boolean;
  readonly requestId: string;
}

const prefetchImage = buildCommand({
  docs: {
    brief: 'Have a rack, or the racks of a pool, fetch an image before a host asks',
    fullDescription:
      'Have a rack, or each rack in which a pool holds hosts, fetch an image into its cache ' +
      'before a host asks. It stays there until `image drop`, as long as there is room. A tag is ' +
      'resolved once, now.',
  },
  parameters: {
    flags: {
      ...sharedFlags,
      rack: { ...rackFlag, optional: true },
      pool: { ...rackFlag, optional: true, brief: 'Id of a pool: each rack that has hosts of it' },
      architecture: {
        kind: 'enum',
        values: ['amd64', 'arm64'],
        default: 'amd64',
        brief: 'Architecture of the machines',
      },
      netboot: {
        kind: 'boolean',
        default: false,
        withNegated: false,
        brief: 'Its kernel and initrd instead of its disk',
      },
      ...requestFlag,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          brief: 'OCI reference by tag or digest, or https://HOST/PATH#sha256=HEX',
          placeholder: 'image',
        },
      ],
    },
    aliases,
  },
  async func(this: CliContext, flags: PrefetchFlags, image: string) {
    const { architecture, netboot, requestId } = flags;
    const names = await racksOf(this.io, flags);
    const answers = await withRacks(this.io, flags, (racks) =>
      Promise.allSettled(
        names.map((name) => racks.prefetchImage({ name, image, architecture, netboot, requestId })),
      ),
    );
    const images = answers.flatMap((each, at) => {
      return each.status === 'fulfilled' ? [inRack(names[at], each.value)] : [];
    });
    const refusals = answers.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    if (images.length === 0) throw refusals[0];
    show(this.io, flags, images);
    if (refusals.length === 0) return;
    for (const refusal of refusals) this.io.err.write(`${describeFailure(refusal)}\n`);
    const text = `${refusals.length} of ${counted(names.length, 'rack')} refused`;
    throw new NotAllDone(text, exitCodes.partlyDone);
  },
});

async function racksOf(io: CommandIo, flags: PrefetchFlags): Promise<readonly string[]> {
  const { rack, pool } = flags;
  if ((rack === undefined) === (pool === undefined)) throw new UsageError('give --rack or --pool');
  if (rack !== undefined) return [resourceName('racks', rack)];
  const parent = resourceName('pools', pool ?? '');
  const { hosts } = await withPools(io, flags, (pools) => pools.listPoolHosts({ parent }));
  const members = hosts.filter(({ state }) => state !== 'contested');
  const racks = new Set(members.map((each) => each.rack).filter((name) => name !== ''));
  if (racks.size === 0) throw new UsageError(`${parent} holds no host, and so is in no rack`);
  return [...racks].toSorted();
}

/** A control plane of an earlier version does not name the rack. */
function inRack(name = '', image: PrefetchedImage): PrefetchedImage {
  return image.rack === '' ? { ...image, rack: name } : image;
}

/** One document as JSON, with the rack of each. */
function show(io: CommandIo, { output }: SharedFlags, images: PrefetchedImage[]): void {
  if (!isForPrograms(output)) printTable(io, output, prefetchedColumns(io.clock), images);
  else {
    const all = create(ListPrefetchedImagesResponseSchema, { images });
    printAs(io, output, ListPrefetchedImagesResponseSchema, all);
  }
}

const listPrefetched = buildCommand({
  docs: { brief: 'List what a rack fetches beforehand, and how far it is' },
  parameters: { flags: { ...sharedFlags, rack: rackFlag }, aliases },
  async func(this: CliContext, flags: SharedFlags & { rack: string }) {
    const name = resourceName('racks', flags.rack);
    const { images } = await withRacks(this.io, flags, (racks) =>
      racks.listPrefetchedImages({ name }),
    );
    show(
      this.io,
      flags,
      images.map((image) => inRack(name, image)),
    );
  },
});

const dropImage = buildCommand({
  docs: { brief: 'Allow a rack’s cache to drop an image when it needs room' },
  parameters: {
    flags: { ...sharedFlags, rack: rackFlag, ...requestFlag },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'Image as it is listed', placeholder: 'image' }],
    },
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { rack: string; requestId: string },
    image: string,
  ) {
    const name = resourceName('racks', flags.rack);
    const { requestId } = flags;
    const dropped = await withRacks(this.io, flags, (racks) =>
      racks.dropPrefetchedImage({ name, image, requestId }),
    );
    show(this.io, flags, [inRack(name, dropped)]);
  },
});

/** All commands on images. */
export const imageRoutes = buildRouteMap({
  routes: {
    push: pushImage,
    prefetch: prefetchImage,
    prefetched: listPrefetched,
    drop: dropImage,
  },
  docs: { brief: briefs.image },
});
