/**
 * First-boot data as a small FAT partition. FAT rather than ISO 9660, because a kernel that boots
 * by UEFI has it anyway, while generic images leave isofs out; a partition rather than a file in
 * the image's own file systems, because those need not be understood.
 *
 * `noCloud` is cloud-init's data source of that name (label CIDATA). `configDrive` has the layout
 * that cloud-init and Ignition know (label config-2): an Ignition document goes as its user data,
 * unchanged, for images that look there (Ignition's platform "openstack").
 */
import { ImageError } from '../failure.ts';
import { makeFat, type SeedFile } from './fat.ts';

export type Seed =
  | {
      readonly kind: 'noCloud';
      readonly metaData: string;
      readonly userData: string;
      readonly networkConfig?: string;
      readonly vendorData?: string;
    }
  | {
      readonly kind: 'configDrive';
      /** JSON. */
      readonly metaData: string;
      readonly userData: string;
      /** JSON. */
      readonly networkData?: string;
      /** JSON. */
      readonly vendorData?: string;
    };

/** Size of the partition, bytes. */
export const seedPartitionBytes = 8 * 1024 * 1024;
/** The size of all files together, UTF-8 bytes. */
export const seedFilesBytesMax = 4 * 1024 * 1024;

const labels = { noCloud: 'CIDATA', configDrive: 'config-2' } as const;

/** The name of the partition. */
export function seedName(seed: Seed): string {
  return labels[seed.kind].toLowerCase();
}

/** The content of the partition. Throws `ImageError`. */
export function makeSeed(seed: Seed, blockBytes: number): Uint8Array {
  const files = filesOf(seed);
  const sizeBytes = files.reduce((sum, { content }) => sum + content.length, 0);
  if (sizeBytes > seedFilesBytesMax) {
    const most = `at most ${seedFilesBytesMax}`;
    throw new ImageError('badSeed', `the first-boot data has ${sizeBytes} bytes; ${most}`);
  }
  return makeFat({
    sizeBytes: seedPartitionBytes,
    blockBytes,
    label: labels[seed.kind],
    files,
  });
}

function filesOf(seed: Seed): SeedFile[] {
  const texts: [string, string | undefined][] =
    seed.kind === 'noCloud'
      ? [
          ['meta-data', seed.metaData],
          ['user-data', seed.userData],
          ['network-config', seed.networkConfig],
          ['vendor-data', seed.vendorData],
        ]
      : [
          ['openstack/latest/meta_data.json', json('metaData', seed.metaData)],
          ['openstack/latest/user_data', seed.userData],
          ['openstack/latest/network_data.json', json('networkData', seed.networkData)],
          ['openstack/latest/vendor_data.json', json('vendorData', seed.vendorData)],
        ];
  return texts.flatMap(([path, text]) =>
    text === undefined ? [] : [{ path, content: new TextEncoder().encode(text) }],
  );
}

/** Text that must be JSON, unchanged. */
function json(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw new ImageError('badSeed', `${field} of the config drive is no JSON`, { cause });
  }
}
