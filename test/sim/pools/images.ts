/**
 * Images of hosts as the rack's agent holds them: from a registry that is slow, away, refuses, or
 * sends something else than was named. Which of it happens is the seed's.
 */
import type { CoreParts } from '@rackwright/agent';
import { type Digest, OciError, parseDigest } from '@rackwright/oci';
import type { SimProcess } from '@rackwright/sim';
import type { WorldView } from '../view.ts';
import { registryName } from '../workflows/images.ts';

const imageBytes = 64_000_000;

/** What goes wrong before anything has come, and how often. */
const refusals = [
  [0.06, 'unreachable', 'does not answer'],
  [0.03, 'notFound', 'has no such image'],
  [0.03, 'unauthorized', 'refuses whoever asks'],
  [0.03, 'tooMany', 'has had too many requests'],
  [0.02, 'noSpace', 'has it, and the cache has no room'],
] as const;

/** How often it comes more slowly than a machine boots. */
const slow = 0.3;
/** What goes wrong while it comes. */
const breaks = [
  [0.04, 'digestMismatch', 'sends something else'],
  [0.04, 'unreachable', 'is away in the middle of it'],
  [0.02, 'truncated', 'sends a part of it'],
] as const;

type HostImages = NonNullable<CoreParts['hostImages']>;

/** The cache of one life of an agent. */
export function simHostImages(view: WorldView, process: SimProcess): HostImages {
  const { chance, imageProofs } = view;
  const kept = new Set<Digest>();
  const maybe = (troubles: typeof refusals | typeof breaks): OciError | undefined => {
    for (const [probability, kind, text] of troubles) {
      if (!chance.happens(probability)) continue;
      view.count(`registry: ${kind}`);
      return new OciError(kind, `${registryName} ${text}`);
    }
    return undefined;
  };
  const waitForSlot = async (told: Parameters<HostImages['pin']>[3]): Promise<void> => {
    view.count('waited for a slot to get an image');
    for (let place = chance.happens(0.3) ? 3 : 1; place > 0; place -= 1) {
      told({ phase: 'queued', position: place });
      await process.answer(chance.around(40_000), () => undefined);
    }
  };
  const begin: HostImages['begin'] = async (host, wanted, signal, told) => {
    if (chance.happens(0.2)) await waitForSlot(told);
    told({ phase: 'admitted' });
    await process.answer(chance.around(2_000), () => undefined);
    signal.throwIfAborted();
    const digest = digestOf(wanted);
    // What was fetched before may have made room for others since.
    const isHere = kept.has(digest) && !chance.happens(0.2);
    const refused = isHere ? undefined : maybe(refusals);
    if (refused !== undefined) throw refused;
    if (!isHere) imageProofs.begun(host, digest);
    told({ phase: 'fetching', fetchedBytes: 1, allBytes: imageBytes });
    const isSlow = !isHere && chance.happens(slow);
    const broken = isHere ? undefined : maybe(breaks);
    const come = async (): Promise<void> => {
      await process.answer(chance.around(isSlow ? 240_000 : 4_000), () => undefined);
      signal.throwIfAborted();
      if (broken !== undefined) throw broken;
      kept.add(digest);
      imageProofs.whole(host, digest);
    };
    // A runner writes it meanwhile, and hears of it when the rest does not come.
    const whole = come();
    whole.catch(() => {});
    const blob = { mediaType: 'application/octet-stream', digest, sizeBytes: imageBytes };
    const disk = { blob, architecture: undefined };
    const netboot = { kernel: blob, initrds: [blob], kernelArguments: '' };
    const image = { disk, netboot, version: '' } as Awaited<
      ReturnType<HostImages['begin']>
    >['image'];
    const looks = { isWhole: async () => true, doubt: () => undefined };
    const ends = { giveBackSlot: () => undefined, release: () => undefined };
    const rest = { digests: [digest], ...looks, ...ends };
    return { image, whole, restarted: new AbortController().signal, ...rest };
  };
  const pin: HostImages['pin'] = async (...asked) => {
    const coming = await begin(...asked);
    await coming.whole;
    return coming;
  };
  return {
    ...{ begin, pin },
    prefetch: async (wanted, signal, told) => {
      const pinned = await pin('', wanted, signal, told);
      return pinned.digests;
    },
    prefer: () => undefined,
    // Its cache is large enough for all.
    isHere: () => true,
    hasRoom: () => true,
  };
}

/** The file is named as its image is: what a disk holds is compared with what was asked for. */
function digestOf({ from }: Parameters<HostImages['pin']>[1]): Digest {
  const text = from.kind === 'web' ? from.digest : (from.reference.split('@')[1] ?? '');
  const digest = parseDigest(text);
  if (digest === undefined) throw new OciError('malformed', `${text} is no digest`);
  return digest;
}
