/** Images that a rack shall have before a host asks: a bounded list in the rack's record. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type DropPrefetchedImageRequest,
  failedPrecondition,
  type ListPrefetchedImagesResponse,
  ListPrefetchedImagesResponseSchema,
  notFound,
  type PrefetchedImage,
  PrefetchedImageSchema,
  type PrefetchImageRequest,
  store as wire,
} from '@rackwright/api';
import { storeKey } from '@rackwright/store';
import { byDigest, imageNameProblem, readImageName, withoutTag } from '../images/index.ts';
import { readRecord } from '../records/index.ts';
import { changeRack } from './brakes.ts';
import { requireName } from './names.ts';
import type { RpcDependencies } from './ports.ts';
import { checkRequestId } from './texts.ts';
import { quote, Violations } from './violations.ts';

/** Images that one rack is asked to have. */
const imagesMax = 16;
/** Longest time that a registry is asked for a tag. */
const resolveTimeoutMs = 20_000;

/** Handles one PrefetchImage; what is there already is answered as it is. */
export async function prefetchImage(
  deps: RpcDependencies,
  { name, image, architecture: given, netboot, requestId }: PrefetchImageRequest,
): Promise<PrefetchedImage> {
  const violations = new Violations();
  violations.addIf('image', imageNameProblem(image));
  const architecture = given === '' ? 'amd64' : given;
  if (architecture !== 'amd64' && architecture !== 'arm64') {
    violations.add('architecture', `is ${quote(given)}; it must be amd64 or arm64`);
  }
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const before = await prefetchedBefore(deps, name, requestId, image);
  if (before !== undefined) return shown(deps, name, before);
  const wanted = create(PrefetchedImageSchema, {
    ...{ image, architecture, netboot, requestedBy: deps.actor },
    reference: await referenceOf(deps, image),
    createTime: timestampFromMs(deps.clock.nowMs()),
  });
  const call = { name, reason: '', requestId };
  const { record } = await changeRack(deps, call, 'prefetchImage', (draft) => {
    const images = draft.record.prefetchedImages;
    if (images.some((each) => isSame(each, wanted))) return;
    if (images.length >= imagesMax) {
      const id = name.replace('racks/', '');
      const list = `\`rackwright image prefetched --rack ${id}\``;
      const words = `${name} has ${images.length} images to fetch beforehand, and no more are kept`;
      throw failedPrecondition('TOO_MANY_IMAGES', `${words}; see ${list}, and drop one.`);
    }
    images.push(wanted);
  });
  const kept = record.prefetchedImages.find((each) => isSame(each, wanted)) ?? wanted;
  return shown(deps, name, kept);
}

/** What this very request has put there: the tag may name another digest by now. */
async function prefetchedBefore(
  deps: RpcDependencies,
  name: string,
  requestId: string,
  image: string,
): Promise<PrefetchedImage | undefined> {
  const record = await rackOf(deps, name);
  const isKnown = requestId !== '' && record.requestIds.includes(`prefetchImage:${requestId}`);
  return isKnown ? record.prefetchedImages.find((each) => each.image === image) : undefined;
}

async function referenceOf({ resolve, clock }: RpcDependencies, image: string): Promise<string> {
  const exact = withoutTag(image);
  const read = readImageName(image);
  if (exact !== undefined || read.kind === 'bad' || read.name.kind === 'file') {
    return exact ?? image;
  }
  const late = new AbortController();
  const cancel = clock.after(resolveTimeoutMs, () => late.abort());
  try {
    const answer = await resolve?.(image, '', late.signal);
    if (answer?.kind === 'digest') return byDigest(read.name, answer.digest);
    const why = answer?.kind === 'failed' ? answer.message : 'no registry was asked';
    const words = `${image} could not be looked up: ${why}; try again, or name its digest.`;
    throw failedPrecondition('IMAGE_UNRESOLVED', words);
  } finally {
    cancel();
  }
}

/** Handles one ListPrefetchedImages. */
export async function listPrefetched(
  deps: RpcDependencies,
  name: string,
): Promise<ListPrefetchedImagesResponse> {
  const { prefetchedImages } = await rackOf(deps, name);
  const images = prefetchedImages.map((each) => shown(deps, name, each));
  return create(ListPrefetchedImagesResponseSchema, { images });
}

/** Handles one DropPrefetchedImage. */
export async function dropPrefetched(
  deps: RpcDependencies,
  { name, image, requestId }: DropPrefetchedImageRequest,
): Promise<PrefetchedImage> {
  let dropped = create(PrefetchedImageSchema, { image });
  const call = { name, reason: '', requestId };
  await changeRack(deps, call, 'dropPrefetchedImage', ({ record }) => {
    const meant = record.prefetchedImages.filter((each) => {
      return each.image === image || each.reference === image;
    });
    const [first] = meant;
    if (first === undefined) throw notFound(`${name} to fetch ${image} beforehand`);
    dropped = first;
    record.prefetchedImages = record.prefetchedImages.filter((each) => !meant.includes(each));
  });
  return shown(deps, name, dropped);
}

async function rackOf({ store }: RpcDependencies, name: string): Promise<wire.RackRecord> {
  const key = storeKey('racks', requireName('racks', name));
  const kept = await readRecord(store, wire.RackRecordSchema, key);
  if (kept === undefined) throw notFound(name);
  return kept.record;
}

function isSame(a: PrefetchedImage, b: PrefetchedImage): boolean {
  const isAlike = a.architecture === b.architecture && a.netboot === b.netboot;
  return isAlike && a.reference === b.reference;
}

/** With how far it is, as far as that is known here. */
function shown(
  { prefetched }: RpcDependencies,
  name: string,
  image: PrefetchedImage,
): PrefetchedImage {
  const told = prefetched?.of(name.replace('racks/', ''), image);
  if (told === undefined) return image;
  const answer = clone(PrefetchedImageSchema, image);
  const { fetchedBytes, allBytes, done, problem, atMs } = told;
  return Object.assign(answer, {
    ...{ fetchedBytes, allBytes, done, problem, asOfTime: timestampFromMs(atMs) },
  });
}
