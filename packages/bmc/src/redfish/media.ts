/**
 * Virtual media (DSP0268, VirtualMedia): a drive for CDs of the machine that the BMC feeds from a
 * URL. Only what is read back counts: a medium is in when the drive names it and reports it as
 * inserted.
 */
import { type BmcAssertion, type BmcResult, failed, ok } from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { variantsOf } from '../vendors.ts';
import { type ActCalls, isRefused, readBy } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectAt, pathOf, pathsAt, textAt, textsAt } from './json.ts';
import { listedIn } from './pages.ts';

/** Drives of one machine that are looked at; each costs a request. */
const drivesMax = 16;

/** The content of a drive. */
interface Medium {
  readonly isIn: boolean;
  readonly image: string;
}

/** Puts the medium at `url` into the drive, in place of one that is in it. */
export async function insertMedia(
  system: Resource,
  url: string,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const drive = await findDrive(system, readBy(calls));
  if (drive.kind !== 'ok') return drive;
  const before = mediumIn(drive.value);
  const wanted = ({ isIn, image }: Medium): boolean => isIn && image === url;
  if (wanted(before)) return ok({ changed: false, notes: [] });
  if (before.isIn) {
    const emptied = await empty(drive.value, calls);
    if (emptied.kind !== 'ok') return emptied;
  }
  const bodies = insertBodies(url);
  const how = { action: '#VirtualMedia.InsertMedia', bodies, purpose: 'insert the medium' };
  return await tell(drive.value, how, wanted, calls);
}

/** Empties the drive. A BMC without such a drive holds no medium. */
export async function ejectMedia(
  system: Resource,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const drive = await findDrive(system, readBy(calls));
  if (drive.kind === 'failed' && drive.type === 'mediaMissing') {
    return ok({ changed: false, notes: [] });
  }
  if (drive.kind !== 'ok') return drive;
  if (!mediumIn(drive.value).isIn) return ok({ changed: false, notes: [] });
  return await empty(drive.value, calls);
}

/** The medium in the machine's drive: its URL, or undefined when it is empty. */
export async function readMedia(
  system: Resource,
  get: Get,
): Promise<BmcResult<string | undefined>> {
  const drive = await findDrive(system, get);
  if (drive.kind !== 'ok') return drive;
  const { isIn, image } = mediumIn(drive.value);
  return ok(isIn ? image : undefined);
}

/** The first drive that takes CDs or DVDs, at the system or, on older services, at its manager. */
async function findDrive(system: Resource, get: Get): Promise<BmcResult<Resource>> {
  const [managerPath] = pathsAt(objectAt(system.body, 'Links'), 'ManagedBy');
  for (const way of variantsOf('virtualMedia')) {
    let owner = system;
    if (way === 'manager') {
      if (managerPath === undefined) continue;
      const bmc = await get(managerPath);
      if (bmc.kind !== 'ok') return bmc;
      owner = bmc.value;
    }
    const path = pathOf(objectAt(owner.body, 'VirtualMedia'));
    if (path === undefined) continue;
    const drive = await firstDrive(path, get);
    if (drive !== undefined) return drive;
  }
  return failed('mediaMissing', 'the BMC has no virtual drive for CDs: boot over the network');
}

async function firstDrive(path: string, get: Get): Promise<BmcResult<Resource> | undefined> {
  const listed = await listedIn(path, get, drivesMax);
  if ('kind' in listed) return listed;
  for (const member of listed.paths) {
    const drive = await get(member);
    if (drive.kind !== 'ok') return drive;
    const types = textsAt(drive.value.body, 'MediaTypes') ?? [];
    if (types.includes('CD') || types.includes('DVD')) return drive;
  }
  return undefined;
}

/** Some services never report `Inserted`: a drive that names an image holds it. */
function mediumIn({ body }: Resource): Medium {
  const image = textAt(body, 'Image') ?? '';
  const inserted = body['Inserted'];
  return { isIn: typeof inserted === 'boolean' ? inserted : image !== '', image };
}

function insertBodies(url: string): readonly JsonObject[] {
  const plain = { Image: url, Inserted: true, WriteProtected: true };
  const transfer = { TransferMethod: 'Stream', TransferProtocolType: 'HTTP' };
  const bodies = { plain, imageAlone: { Image: url }, withTransfer: { ...plain, ...transfer } };
  return variantsOf('insertMedia').map((way) => bodies[way]);
}

function empty(drive: Resource, calls: ActCalls): Promise<BmcResult<BmcAssertion>> {
  const how = {
    action: '#VirtualMedia.EjectMedia',
    bodies: [{}],
    patch: { Image: null, Inserted: false },
    purpose: 'eject the medium',
  };
  return tell(drive, how, ({ isIn }) => !isIn, calls);
}

interface Order {
  readonly action: string;
  /** Tried in this order while the one before was refused. */
  readonly bodies: readonly JsonObject[];
  /** Set where there is no action; absent: the first of the bodies. */
  readonly patch?: JsonObject;
  readonly purpose: string;
}

async function tell(
  drive: Resource,
  { action, bodies, patch = bodies[0] ?? {}, purpose }: Order,
  holds: (medium: Medium) => boolean,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const path = pathOf(objectAt(objectAt(drive.body, 'Actions'), action), 'target');
  let result: BmcResult<void> = ok(undefined);
  if (path === undefined)
    result = await calls.governed((talk) => talk.patch(drive, patch, calls.signal));
  else {
    for (const body of bodies) {
      const again = await calls.governed((talk) => talk.post(path, body, calls.signal));
      // The first refusal says most: it is of the preferred request.
      if (result.kind === 'ok' || !isRefused(again)) result = again;
      if (!isRefused(again)) break;
    }
  }
  if (isRefused(result)) {
    return failed('mediaRefused', `the BMC refused to ${purpose}`, result.backendText);
  }
  if (result.kind !== 'ok' && !mayHaveHappened(result)) return result;
  const read = async (): Promise<BmcResult<Medium>> => {
    const now = await readBy(calls)(drive.path);
    return now.kind === 'ok' ? ok(mediumIn(now.value)) : now;
  };
  const after = await readUntil(calls.clock, calls.readBack, read, holds, calls.signal);
  if (after.kind !== 'ok') return after;
  if (holds(after.value)) return ok({ changed: true, notes: [] });
  if (result.kind !== 'ok') return result;
  const text = `Inserted ${after.value.isIn}, Image ${JSON.stringify(after.value.image)}`;
  return failed('notApplied', `the BMC accepted to ${purpose} and did not`, text);
}
