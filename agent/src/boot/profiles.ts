/**
 * Boot settings of some hosts, in place of the rack's: loaders, words for the runner's kernel, and
 * the firmware type that their BMCs are set to. A host names its profile by a label.
 *
 * P1 A host that names a profile which is not configured boots nothing: the rack's settings may be
 *    wrong for it, and nobody would notice.
 */
import type { Firmware } from '@rackwright/bmc';
import type { BootPlatform } from '@rackwright/dhcp';

/** Names among the loader files. */
export type Loaders = Readonly<Partial<Record<Exclude<BootPlatform, 'other'>, string>>>;

export interface BootProfile {
  readonly name: string;
  /** Loaders of the platforms that it names; other platforms get the rack's. */
  readonly loaders: Loaders;
  /** Added after the rack's. */
  readonly kernelArguments: readonly string[];
  /** The firmware type whose flag a boot override carries. */
  readonly firmware: Firmware;
}

/** The boot settings of a host. */
export interface HostBootSettings {
  readonly loaders: Loaders;
  readonly kernelArguments: readonly string[];
}

export interface RackBoot extends HostBootSettings {
  readonly profiles: readonly BootProfile[];
}

/** The profile of this name; undefined: there is none (P1). */
export function chooseBoot(rack: RackBoot, name: string | undefined): HostBootSettings | undefined {
  if (name === undefined) return rack;
  const profile = rack.profiles.find((one) => one.name === name);
  if (profile === undefined) return undefined;
  return {
    loaders: { ...rack.loaders, ...profile.loaders },
    kernelArguments: [...rack.kernelArguments, ...profile.kernelArguments],
  };
}

/** What is wrong and what would be right, for the person who set the label. */
export function unknownProfile(name: string, profiles: readonly BootProfile[]): string {
  const names = profiles.map((one) => one.name).join(', ');
  return (
    `the host's label boot is ${JSON.stringify(name)}; this rack's agent has ` +
    (names === '' ? 'no bootProfiles in its configuration' : `the boot profiles ${names}`)
  );
}
