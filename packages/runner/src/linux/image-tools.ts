/** The places where images are put onto disks: a real machine, or a simulated one. */
import { access } from 'node:fs/promises';
import { bootEntryWrites } from '@rackwright/disk-image';
import type { Clock, Exec, Hashes, WebClient } from '@rackwright/platform';
import type { ImageTools } from '../deploy/image-tools.ts';
import { patientLimits, webSource } from '../provision/web-source.ts';
import { mountEfiVariables, readEfiVariables, writeEfiVariables } from './efi-variables.ts';
import { rereadPartitions } from './image-disk.ts';
import { ownArchitecture } from './own-architecture.ts';
import { isMissing } from './sys-files.ts';
import { unxz } from './xz-filter.ts';

/** There when the kernel was started by UEFI. */
const efiFolder = '/sys/firmware/efi';

export function linuxImageTools(
  exec: Exec,
  web: WebClient,
  clock: Clock,
  hashes: Hashes,
): ImageTools {
  return {
    ...softwareImageTools(web, clock, hashes),
    firmware: async () => ((await isThere(efiFolder)) ? 'uefi' : 'bios'),
    settle: (device) => rereadPartitions(exec, device),
    addBootEntry: async (entry, position) => {
      await mountEfiVariables(exec);
      const { name, writes } = bootEntryWrites(await readEfiVariables(), entry, position);
      await writeEfiVariables(writes);
      return name;
    },
  };
}

/** Nothing boots from its disks, so images are not checked for booting. */
export function softwareImageTools(web: WebClient, clock: Clock, hashes: Hashes): ImageTools {
  return {
    architecture: ownArchitecture,
    unxz,
    hashes,
    limits: patientLimits(clock),
    sourceAt: (url) => webSource(web, url),
    firmware: async () => undefined,
    settle: async () => {},
    addBootEntry: async () => '',
  };
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
