/**
 * Which address a client gets. Pure: plan, book and time in, address and changes out.
 *
 * C1 An address is taken only when nobody else holds it: never while another's lease runs, nor
 *    while it is the address of a known host, even one that is switched off,
 *    for as long as the rack lists that host.
 * C2 The order is: reservation, the present address, the requested address, and then one that the
 *    MAC yields. So even after the loss of the book most hosts get the same address again.
 * C3 When a client leaves an address before its lease has ended, that address is set aside until
 *    then: a machine that still uses it uses it alone.
 */
import type { Mac } from '../mac.ts';
import { type AddressPlan, type AddressPool, isInPlan } from './address-plan.ts';
import type { Lease, LeaseChange, LeaseView } from './lease-book.ts';

/** The state that a choice depends on. */
export interface AddressState {
  readonly plan: AddressPlan;
  readonly book: LeaseView;
  readonly nowMs: number;
  /** Whether a MAC is that of a known host: it keeps its address while it is away. */
  readonly isKnown: (mac: Mac) => boolean;
}

/** Whether this server has addresses for a client at all. */
export function isServed({ plan, isKnown }: AddressState, mac: Mac): boolean {
  return plan.reservedFor.has(mac) || isKnown(mac) || plan.discovery !== undefined;
}

/** The address for a client that asks for any, or undefined when there is none left. */
export function chooseAddress(
  state: AddressState,
  mac: Mac,
  wish: string | undefined,
): string | undefined {
  const reserved = state.plan.reservedFor.get(mac);
  if (reserved !== undefined && canHave(state, mac, reserved)) return reserved;
  const own = state.book.leaseOf(mac)?.address;
  for (const pool of poolsFor(state, mac)) {
    for (const address of [own, wish]) {
      if (address === undefined || !pool.has(address)) continue;
      if (canHave(state, mac, address)) return address;
    }
    const found = search(state, mac, pool);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Whether a client may have the address that it names: its present one, its reservation, or, when
 * it has none, a free one in its ranges.
 */
export function mayHave(state: AddressState, mac: Mac, address: string): boolean {
  const reserved = state.plan.reservedFor.get(mac) === address;
  const own = state.book.leaseOf(mac)?.address;
  if (own !== undefined && own !== address && !reserved) return false;
  const inPool = poolsFor(state, mac).some((pool) => pool.has(address));
  return (reserved || inPool) && canHave(state, mac, address);
}

/** The changes in the book when `mac` gets `lease`, in place of all earlier entries. */
export function changesFor(
  { book, nowMs }: AddressState,
  kind: 'offered' | 'leased',
  lease: Lease,
): LeaseChange[] {
  const changes: LeaseChange[] = [];
  const before = book.leaseOf(lease.mac);
  if (before !== undefined && before.address !== lease.address) {
    changes.push({ kind: 'forgotten', mac: lease.mac });
    if (before.bound && before.untilMs > nowMs) {
      changes.push({ kind: 'setAside', ...before });
    }
  }
  const holder = book.holderOf(lease.address);
  if (holder !== undefined && holder.mac !== lease.mac) {
    changes.push({ kind: 'forgotten', mac: holder.mac });
  }
  return [...changes, { kind, lease }];
}

/** Known hosts have their own range first, and take from that of strangers when it is full. */
function poolsFor({ plan, isKnown }: AddressState, mac: Mac): AddressPool[] {
  const pools = isKnown(mac) ? [plan.range, plan.discovery] : [plan.discovery];
  return pools.filter((pool) => pool !== undefined);
}

/** C1 */
function canHave(state: AddressState, mac: Mac, address: string): boolean {
  const { plan, book, nowMs } = state;
  if (!isInPlan(plan, mac, address) || book.isSetAside(address, nowMs)) return false;
  const holder = book.holderOf(address);
  return holder === undefined || holder.mac === mac || hasLost(state, holder);
}

/** Whether the holder's time is over, and it has no claim to be remembered. */
function hasLost({ plan, isKnown, nowMs }: AddressState, holder: Lease): boolean {
  if (holder.untilMs > nowMs) return false;
  return !isKnown(holder.mac) || !isInPlan(plan, holder.mac, holder.address);
}

/** An address that was never given, or else the one whose lease ended first. */
function search(state: AddressState, mac: Mac, { addresses }: AddressPool): string | undefined {
  const { book, nowMs } = state;
  const start = spread(mac) % addresses.length;
  let oldest: Lease | undefined;
  for (let step = 0; step < addresses.length; step += 1) {
    const address = addresses[(start + step) % addresses.length] as string;
    const holder = book.holderOf(address);
    // The common case of a full pool, and quick: strangers may ask as often as they like.
    if (holder !== undefined && holder.mac !== mac && holder.untilMs > nowMs) continue;
    if (!canHave(state, mac, address)) continue;
    if (holder === undefined || holder.mac === mac) return address;
    if (oldest === undefined || holder.untilMs < oldest.untilMs) oldest = holder;
  }
  return oldest?.address;
}

/** FNV-1a over the text, 32 bits: the same MAC always points to the same place. */
function spread(mac: Mac): number {
  let hash = 0x811c_9dc5;
  for (let index = 0; index < mac.length; index += 1) {
    hash = Math.imul(hash ^ mac.charCodeAt(index), 0x0100_0193) >>> 0;
  }
  return hash;
}
