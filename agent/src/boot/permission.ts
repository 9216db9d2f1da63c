/**
 * The one decision whether a host may boot the runner, or its image over the network. DHCP, TFTP,
 * the boot script and files all ask here and nowhere else (DESIGN §9).
 *
 * B1 Pure: memory, MAC and time in, decision out.
 * B2 Without an open grant nothing starts the runner. A doubt (a MAC that two hosts claim, a grant
 *    of a host that is not in the snapshot) is no permission.
 * B3 A clock that went back opens nothing: time is never before the latest that was written down,
 *    nor before the opening of the grant.
 * B4 A machine that is no host boots only by the rack's discovery policy, for its inventory. What
 *    hosts get never depends on such machines, however many there seem to be.
 * B5 The image of a host that has no disk to boot never expires; a grant that is open comes first.
 */

import { canonicalMac, type Mac } from '@rackwright/dhcp';
import type { HostName, HostUid, OperationId } from '@rackwright/messages';
import type { BootGrant, BootHost, BootMemory, DiscoveryBoot } from './memory.ts';

export type BootDecision =
  | {
      readonly kind: 'runner';
      readonly hostUid: HostUid;
      readonly hostName: HostName;
      readonly operationId: OperationId;
      readonly bootToken: string;
    }
  /** It runs an image that it boots over the network. */
  | { readonly kind: 'image'; readonly hostUid: HostUid; readonly hostName: HostName }
  | {
      readonly kind: 'localBoot';
      readonly hostUid: HostUid;
      readonly reason: 'noGrant' | 'grantExpired' | 'ambiguousMac';
    }
  /** A machine that is no host, in a boot that was opened for its inventory. */
  | {
      readonly kind: 'discovery';
      readonly operationId: OperationId;
      readonly bootToken: string;
    }
  /** A machine that is no host: such a boot may be opened for it. */
  | { readonly kind: 'mayDiscover' }
  | { readonly kind: 'unknownHost'; readonly reason: NoDiscovery };

/** Why a machine that is no host gets no boot. */
export type NoDiscovery =
  | 'off'
  | 'noMac'
  /** It had one a short while ago. */
  | 'spacing'
  | 'tooManyAtOnce'
  | 'tooManyThisHour';

/** The boot protocol's answer to the client; `runner`: it loads what the script names. */
export type BootPermission = 'runner' | 'localBoot' | 'unknownHost';

/** Whether it was about a host, and not about some other machine. */
export function isAboutHost(decision: BootDecision): boolean {
  return 'hostUid' in decision;
}

/** The decision as DHCP states it. */
export function permissionOf({ kind }: BootDecision): BootPermission {
  // The script decides what boots.
  return kind === 'discovery' || kind === 'mayDiscover' || kind === 'image' ? 'runner' : kind;
}

const hourMs = 3_600_000;

/** Whether it may have kernel and ramdisk of the runner. */
export function mayStartRunner({ kind }: BootDecision): boolean {
  return kind === 'runner' || kind === 'discovery';
}

/** Decides for one MAC at one moment of wall time. */
export function bootDecision(memory: BootMemory, mac: Mac, nowMs: number): BootDecision {
  const owners = ownersOf(memory.snapshot, mac);
  const [host] = owners;
  if (host === undefined) return decideUnknown(memory, mac, nowMs);
  const { hostUid, hostName } = host;
  if (owners.length > 1) return { kind: 'localBoot', hostUid, reason: 'ambiguousMac' };
  const grant = latestGrant(memory.grants, hostUid);
  const image = host.netboot === true ? ({ kind: 'image', hostUid, hostName } as const) : undefined;
  if (grant === undefined) return image ?? { kind: 'localBoot', hostUid, reason: 'noGrant' };
  const atMs = Math.max(nowMs, memory.writtenAtMs ?? 0, grant.openedAtMs);
  if (atMs >= grant.expiresAtMs) {
    return image ?? { kind: 'localBoot', hostUid, reason: 'grantExpired' };
  }
  const { operationId, bootToken } = grant;
  return { kind: 'runner', hostUid, hostName, operationId, bootToken };
}

/**
 * The profile that the host of this MAC boots by. None when two hosts claim it: neither is booted.
 */
export function bootProfileOf(memory: BootMemory, mac: Mac): string | undefined {
  const [host, ...others] = ownersOf(memory.snapshot, mac);
  return others.length > 0 ? undefined : host?.bootProfile;
}

/** The host's boot profile; undefined as well for a host that is not in the snapshot. */
export function bootProfileOfHost({ snapshot }: BootMemory, hostUid: HostUid): string | undefined {
  let profiles = profilesOfHosts.get(snapshot);
  if (profiles === undefined) {
    profiles = new Map(snapshot.hosts.map((host) => [host.hostUid, host.bootProfile]));
    profilesOfHosts.set(snapshot, profiles);
  }
  return profiles.get(hostUid);
}

/** Kept as long as the snapshot itself. */
const profilesOfHosts = new WeakMap<Snapshot, ReadonlyMap<HostUid, string | undefined>>();

function decideUnknown(memory: BootMemory, mac: Mac, nowMs: number): BootDecision {
  const { discovery } = memory;
  if (discovery === undefined) return unknown('off');
  if (!isUnicast(mac)) return unknown('noMac');
  const { limits, boots } = discovery;
  const atMs = Math.max(nowMs, memory.writtenAtMs ?? 0);
  const last = boots.get(mac);
  if (last !== undefined) {
    const { operationId, bootToken } = last;
    if (isOpen(last, atMs)) return { kind: 'discovery', operationId, bootToken };
    if (atMs - last.openedAtMs < limits.spacingMs) return unknown('spacing');
  }
  let underWay = 0;
  let inThisHour = 0;
  for (const boot of boots.values()) {
    if (!boot.over && atMs < boot.expiresAtMs) underWay += 1;
    if (atMs - boot.openedAtMs < hourMs) inThisHour += 1;
  }
  if (underWay >= limits.bootsMax) return unknown('tooManyAtOnce');
  if (inThisHour >= limits.bootsPerHourMax) return unknown('tooManyThisHour');
  return { kind: 'mayDiscover' };
}

/** Files may be fetched any number of times, until a runner has connected. */
function isOpen({ taken, over, openedAtMs, expiresAtMs }: DiscoveryBoot, atMs: number): boolean {
  return !taken && !over && Math.max(atMs, openedAtMs) < expiresAtMs;
}

function unknown(reason: NoDiscovery): BootDecision {
  return { kind: 'unknownHost', reason };
}

/** Neither a group address nor zero. */
function isUnicast(mac: Mac): boolean {
  return (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0 && !/^[0:]+$/.test(mac);
}

type Snapshot = BootMemory['snapshot'];

/** Hosts by MAC, kept as long as the snapshot itself, so that a decision costs one look-up. */
const indexes = new WeakMap<Snapshot, ReadonlyMap<Mac, readonly BootHost[]>>();

function ownersOf(snapshot: Snapshot, mac: Mac): readonly BootHost[] {
  let index = indexes.get(snapshot);
  if (index === undefined) {
    index = indexOf(snapshot.hosts);
    indexes.set(snapshot, index);
  }
  return index.get(mac) ?? [];
}

function indexOf(hosts: readonly BootHost[]): ReadonlyMap<Mac, readonly BootHost[]> {
  const index = new Map<Mac, BootHost[]>();
  for (const host of hosts) {
    // A host that lists one MAC twice is still one owner.
    for (const mac of new Set(host.macs.map(canonicalMac))) {
      if (mac === undefined) continue;
      const owners = index.get(mac);
      if (owners === undefined) index.set(mac, [host]);
      else owners.push(host);
    }
  }
  return index;
}

/** The latest grant of each host, kept as long as the list of grants itself. */
const latestGrants = new WeakMap<readonly BootGrant[], ReadonlyMap<HostUid, BootGrant>>();

/** The grant of the host's latest operation; an earlier one has been superseded. */
function latestGrant(grants: readonly BootGrant[], hostUid: HostUid): BootGrant | undefined {
  let latest = latestGrants.get(grants);
  if (latest === undefined) {
    latest = latestOf(grants);
    latestGrants.set(grants, latest);
  }
  return latest.get(hostUid);
}

function latestOf(grants: readonly BootGrant[]): ReadonlyMap<HostUid, BootGrant> {
  const latest = new Map<HostUid, BootGrant>();
  for (const grant of grants) {
    const before = latest.get(grant.hostUid);
    if (before === undefined || grant.openedAtMs >= before.openedAtMs) {
      latest.set(grant.hostUid, grant);
    }
  }
  return latest;
}
