/** Images that a rack should have before a host asks: a bounded list in the rack's record. */
import { clone, create, fromJsonString, toJsonString } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type DropPrefetchedImageRequest,
  failedPrecondition,
  invalidArgument,
  type ListPrefetchedImagesResponse,
  ListPrefetchedImagesResponseSchema,
  notFound,
  type PrefetchedImage,
  PrefetchedImageSchema,
  type PrefetchImageRequest,
  type RequestId,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { isUnscoped } from '../access/index.ts';
import { requireName } from '../call/names.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { checkRequestId } from '../call/texts.ts';
import { quote, Violations } from '../call/violations.ts';
import { credentialVersions, readFleet } from '../host/index.ts';
import { imageByDigest } from '../host/spec/image-by-digest.ts';
import { credentialsOfRegistries, hostImageOf, imageNameProblem } from '../images/index.ts';
import { appliedId, hasApplied, idOf, readRecord } from '../records/index.ts';
import { changeRack, type RackDraft } from './brakes.ts';

/** The most images of one rack's list. */
const imagesMax = 16;

/** Handles one PrefetchImage; an image that is already listed is returned as it is. */
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
  const question = { image, architecture, netboot };
  const before = await prefetchedBefore(deps, name, requestId, question);
  if (before !== undefined) return shown(deps, name, before);
  const wanted = create(PrefetchedImageSchema, {
    ...{ ...question, requestedBy: deps.actor },
    reference: await referenceOf(deps, image),
    createTime: timestampFromMs(deps.clock.nowMs()),
  });
  const call = { name, reason: '', requestId };
  const { record } = await changeRack(deps, call, 'prefetchImage', (draft) => {
    const images = draft.record.prefetchedImages;
    const there = images.find((each) => isSame(each, wanted));
    remember(draft, 'prefetched', requestId, wanted);
    if (there !== undefined) return;
    if (images.length >= imagesMax) {
      const id = idOf(name);
      const list = `\`rackwright image prefetched --rack ${id}\``;
      const text = `${name} has ${images.length} images to fetch beforehand, and no more are kept`;
      throw failedPrecondition('TOO_MANY_IMAGES', `${text}; see ${list}, and drop one.`);
    }
    images.push(wanted);
  });
  const kept = record.prefetchedImages.find((each) => isSame(each, wanted));
  // Another call has applied the same request in the meantime.
  const answer = kept ?? (await prefetchedBefore(deps, name, requestId, question)) ?? wanted;
  return shown(deps, name, answer);
}

type PrefetchQuestion = Pick<PrefetchedImage, 'image' | 'architecture' | 'netboot'>;

/**
 * The image that this request has added, or has found: the tag may have another digest by now.
 * Undefined: the request was not applied yet. Throws `failedPrecondition` when the image was
 * removed.
 */
async function prefetchedBefore(
  deps: RpcDependencies,
  name: string,
  requestId: RequestId,
  question: PrefetchQuestion,
): Promise<PrefetchedImage | undefined> {
  const record = await rackOf(deps, name);
  if (!hasApplied(record, appliedId('prefetchImage', requestId))) return undefined;
  const recalled = recall(record, 'prefetched', requestId);
  const isAsked = recalled === undefined || isSameQuestion(recalled, question);
  const found = record.prefetchedImages.find((each) => {
    return recalled === undefined ? isSameQuestion(each, question) : isSame(each, recalled);
  });
  if (isAsked && found !== undefined) return found;
  throw notAnyMore(name, requestId, question.image);
}

function isSameQuestion(a: PrefetchQuestion, b: PrefetchQuestion): boolean {
  return a.image === b.image && a.architecture === b.architecture && a.netboot === b.netboot;
}

type Did = 'prefetched' | 'dropped';

/** The result of a request is stored next to its id, which may be the only change. */
function remember(
  { record }: RackDraft,
  did: Did,
  requestId: RequestId,
  { image, reference, architecture, netboot }: PrefetchedImage,
): void {
  if (requestId === '') return;
  const kept = create(PrefetchedImageSchema, { image, reference, architecture, netboot });
  record.requestIds.push(`${did}:${requestId} ${toJsonString(PrefetchedImageSchema, kept)}`);
}

/** Undefined: it was too long ago. */
function recall(
  record: wire.RackRecord,
  did: Did,
  requestId: RequestId,
): PrefetchedImage | undefined {
  const begin = `${did}:${requestId} `;
  const kept = record.requestIds.find((each) => each.startsWith(begin));
  return kept === undefined
    ? undefined
    : fromJsonString(PrefetchedImageSchema, kept.slice(begin.length));
}

function notAnyMore(name: string, requestId: RequestId, image: string): Error {
  const was = `the request ${quote(requestId)} was answered before`;
  const text = `${was}, and ${name} has no ${image} to fetch beforehand by it any more`;
  return failedPrecondition('REQUEST_ID_USED', `${text}; ask with another request id.`);
}

/** The image by digest, if the fleet's settings permit it for the agent. Otherwise throws. */
async function referenceOf(deps: RpcDependencies, image: string): Promise<string> {
  const reference = await imageByDigest(deps, image);
  const fleet = await readFleet(deps.store);
  const registries = fleet?.fleet?.spec?.registries;
  // A caller with a scope does not see registry credentials: the agent reports missing ones.
  const versions = isUnscoped(deps.principal.scope)
    ? await credentialVersions(deps, fleet)
    : new Map(credentialsOfRegistries(registries).map((name) => [name, 0n]));
  const resolved = hostImageOf(reference, fleet?.fleet?.spec, versions);
  if (resolved.kind === 'ok') return reference;
  throw invalidArgument([{ field: 'image', description: resolved.problem }]);
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
  let dropped: PrefetchedImage | undefined;
  const call = { name, reason: '', requestId };
  const changed = await changeRack(deps, call, 'dropPrefetchedImage', (draft) => {
    const { record } = draft;
    const meant = record.prefetchedImages.filter((each) => {
      return each.image === image || each.reference === image;
    });
    const [first] = meant;
    if (first === undefined) throw notFound(`${name} to fetch ${image} beforehand`);
    dropped = first;
    remember(draft, 'dropped', requestId, first);
    record.prefetchedImages = record.prefetchedImages.filter((each) => !meant.includes(each));
  });
  dropped ??= recall(changed.record, 'dropped', requestId);
  const isMeant = dropped?.image === image || dropped?.reference === image;
  if (dropped === undefined || !isMeant) throw notAnyMore(name, requestId, image);
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

/** With its progress, as far as it is known here. */
function shown(
  { prefetched }: RpcDependencies,
  name: string,
  image: PrefetchedImage,
): PrefetchedImage {
  const answer = Object.assign(clone(PrefetchedImageSchema, image), { rack: name });
  const progress = prefetched?.of(idOf(name), image);
  if (progress === undefined) return answer;
  const { fetchedBytes, allBytes, done, problem, atMs } = progress;
  return Object.assign(answer, {
    ...{ fetchedBytes, allBytes, done, problem, asOfTime: timestampFromMs(atMs) },
  });
}
