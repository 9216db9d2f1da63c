/**
 * The one decision whether a host may boot the runner. DHCP, TFTP, the boot script and files all
 * ask here and nowhere else (DESIGN §9).
 *
 * B1 Pure: memory, MAC and time in, decision out.
 * B2 Without an open grant nothing starts the runner. A doubt (a MAC that two hosts claim, a grant
 *    of a host that is not in the snapshot) is no permission.
 * B3 A clock that went back opens nothing: time is never before the latest that was written down,
 *    nor before the opening of the grant.
 */
import { canonicalMac } from './mac.ts';
import type { BootGrant, BootHost, BootMemory } from './memory.ts';

export type BootDecision =
  | {
      readonly kind: 'runner';
      readonly hostUid: string;
      readonly hostName: string;
      readonly operationId: string;
      readonly bootToken: string;
    }
  | {
      readonly kind: 'localBoot';
      readonly hostUid: string;
      readonly reason: 'noGrant' | 'grantExpired' | 'ambiguousMac';
    }
  | { readonly kind: 'unknownHost' };

/** Decides for one MAC, in any spelling, at one moment of wall time. */
export function bootDecision(memory: BootMemory, mac: string, nowMs: number): BootDecision {
  const owners = ownersOf(memory.snapshot, mac);
  const [host] = owners;
  if (host === undefined) return { kind: 'unknownHost' };
  const { hostUid, hostName } = host;
  if (owners.length > 1) return { kind: 'localBoot', hostUid, reason: 'ambiguousMac' };
  const grant = latestGrant(memory.grants, hostUid);
  if (grant === undefined) return { kind: 'localBoot', hostUid, reason: 'noGrant' };
  const atMs = Math.max(nowMs, memory.writtenAtMs ?? 0, grant.openedAtMs);
  if (atMs >= grant.expiresAtMs) return { kind: 'localBoot', hostUid, reason: 'grantExpired' };
  const { operationId, bootToken } = grant;
  return { kind: 'runner', hostUid, hostName, operationId, bootToken };
}

type Snapshot = BootMemory['snapshot'];

/** Hosts by MAC, kept as long as the snapshot itself, so that a decision costs one look-up. */
const indexes = new WeakMap<Snapshot, ReadonlyMap<string, readonly BootHost[]>>();

function ownersOf(snapshot: Snapshot, mac: string): readonly BootHost[] {
  let index = indexes.get(snapshot);
  if (index === undefined) {
    index = indexOf(snapshot.hosts);
    indexes.set(snapshot, index);
  }
  return index.get(canonicalMac(mac) ?? '') ?? [];
}

function indexOf(hosts: readonly BootHost[]): ReadonlyMap<string, readonly BootHost[]> {
  const index = new Map<string, BootHost[]>();
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

/** The grant of the host's latest operation; an earlier one has been superseded. */
function latestGrant(grants: readonly BootGrant[], hostUid: string): BootGrant | undefined {
  let latest: BootGrant | undefined;
  for (const grant of grants) {
    if (grant.hostUid !== hostUid) continue;
    if (latest === undefined || grant.openedAtMs >= latest.openedAtMs) latest = grant;
  }
  return latest;
}
