/** Chooses requests out of the BMC's offers, and judges whether the BMC has carried them out. */
import { type BmcResult, type BootOverride, failed, ok, type PowerState } from '../driver.ts';
import { variantsOf, vendorDifference } from '../vendors.ts';
import type { JsonObject } from './json.ts';
import type { BootFacts } from './system.ts';

export interface BootPreferences {
  /** Which way a machine that offers both boots from the network. */
  readonly networkBoot: 'pxe' | 'http';
  /**
   * `asFound` keeps the machine's legacy or UEFI mode, because a change would need a new setup of
   * its firmware. `asAsked` sets the override's mode.
   */
  readonly bootMode: 'asFound' | 'asAsked';
}

/** The expected read-back of a boot override. */
export interface WantedBoot {
  /** `None` means no override at all. */
  readonly target: string;
  readonly mode: string | undefined;
}

const networkTargets = { pxe: ['Pxe', 'UefiHttp'], http: ['UefiHttp', 'Pxe'] } as const;
const ownTargets = { disk: ['Hdd'], cd: ['Cd', 'UsbCd'] } as const;

export function wantedBoot(
  { device, firmware }: BootOverride,
  facts: BootFacts,
  { networkBoot, bootMode }: BootPreferences,
): BmcResult<WantedBoot> {
  if (device === 'none') return ok({ target: 'None', mode: undefined });
  const mode = firmware === 'uefi' ? 'UEFI' : 'Legacy';
  if (bootMode === 'asAsked' && facts.mode === undefined) {
    return failed('unsupported', `the BMC lets nobody choose between legacy and UEFI boot`);
  }
  const candidates = device === 'network' ? networkTargets[networkBoot] : ownTargets[device];
  const target = candidates.find((one) => facts.targets?.includes(one) ?? true);
  if (target === undefined) {
    const offered = facts.targets?.join(', ') ?? '';
    const message = `the BMC cannot boot the system from ${device}`;
    return failed('unsupported', message, `it offers ${offered === '' ? 'nothing' : offered}`);
  }
  return ok({ target, mode: bootMode === 'asAsked' ? mode : undefined });
}

/**
 * The bodies of the PATCH, in the order in which they are tried: each after a refusal of the one
 * before it. The first has all in one request, because some BMCs accept only that.
 */
export function bootPatches({ target, mode }: WantedBoot, now: BootFacts): readonly JsonObject[] {
  if (target === 'None') {
    const off = { BootSourceOverrideEnabled: 'Disabled' };
    const targets = {
      enabledAlone: {},
      targetNone: { BootSourceOverrideTarget: 'None' },
      targetAsFound: { BootSourceOverrideTarget: now.target ?? 'None' },
    };
    return variantsOf('bootOff').map((way) => ({ Boot: { ...off, ...targets[way] } }));
  }
  const Boot = {
    BootSourceOverrideEnabled: 'Once',
    BootSourceOverrideTarget: target,
    ...(mode === undefined ? {} : { BootSourceOverrideMode: mode }),
  };
  return [{ Boot }];
}

export type BootReading =
  | { readonly kind: 'same' }
  /** Not the same, and allowed. */
  | { readonly kind: 'allowed'; readonly note: string }
  | { readonly kind: 'different'; readonly text: string };

/** Whether the value that was read back is the requested one. */
export function judgeBoot(
  wanted: WantedBoot,
  facts: BootFacts,
  manufacturer: string | undefined,
): BootReading {
  const { target, enabled, mode } = facts;
  const read = `${enabled ?? 'nothing'} ${target ?? ''} ${mode ?? ''}`.trim();
  if (wanted.target === 'None') {
    const isOff = enabled === 'Disabled' || target === 'None';
    return isOff ? { kind: 'same' } : { kind: 'different', text: `set Disabled, read ${read}` };
  }
  const text = `set Once ${wanted.target} ${wanted.mode ?? ''}`.trim();
  const isTarget = target === wanted.target && (wanted.mode ?? mode) === mode;
  if (isTarget && enabled === 'Once') return { kind: 'same' };
  const { maker, onceMayReadContinuous } = vendorDifference({ manufacturer });
  if (isTarget && enabled === 'Continuous' && onceMayReadContinuous) {
    return { kind: 'allowed', note: `${maker}: ${text}, read ${read}` };
  }
  return { kind: 'different', text: `${text}, read ${read}` };
}

const resetTypesFor: Readonly<Record<PowerState | 'softOff', readonly string[]>> = {
  on: ['On', 'ForceOn'],
  // Not GracefulShutdown, which asks the system; not PushPowerButton, which may also switch on.
  off: ['ForceOff'],
  // Not PushPowerButton: pressed as the system stops by itself it switches the machine on.
  softOff: ['GracefulShutdown'],
};

const cannot: Readonly<Record<PowerState | 'softOff', string>> = {
  on: 'switch the system on at once',
  off: 'switch the system off at once',
  softOff: 'ask the system to shut down',
};

/** `offered` undefined: the BMC does not list its types, and the usual one has to do. */
export function resetTypeFor(
  state: PowerState | 'softOff',
  offered: readonly string[] | undefined,
): BmcResult<string> {
  const type = resetTypesFor[state].find((one) => offered?.includes(one) ?? true);
  if (type !== undefined) return ok(type);
  const text = `it offers ${offered?.join(', ') ?? ''}`;
  return failed('unsupported', `the BMC cannot ${cannot[state]}`, text);
}
