/** The content that an image has left on a disk, for the report. */
import { create } from '@bufbuild/protobuf';
import type { BootableFirmware } from '@rackwright/disk-image';
import type { DeviceFacts } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import type * as runner from '@rackwright/messages/runner';
import type { InstalledDisk } from '../provision/provision.ts';

/** Partitions that are reported at most. */
const partitionsMax = 32;

/** `installed`: absent where it has failed. */
export function writtenImage(written: {
  readonly file: runner.ImageFile;
  readonly device: DeviceFacts;
  readonly firmware: BootableFirmware | undefined;
  readonly installed?: InstalledDisk;
  readonly entry?: string;
  readonly problem?: string;
}): agent.WrittenImage {
  const { file, device, firmware = '', installed, entry = '', problem = '' } = written;
  const { serial, wwn, name, sizeBytes } = device;
  const disk = { serial, wwn, device: name, diskBytes: BigInt(sizeBytes), firmware };
  return create(agent.WrittenImageSchema, {
    ...{ digest: file.digest, whole: installed !== undefined, ...disk },
    ...{ bootEntry: entry, bootEntryProblem: problem },
    ...(installed === undefined ? {} : contentOf(installed)),
  });
}

function contentOf(installed: InstalledDisk) {
  const { sizeBytes, contentSha256, table, partitions, grown, notGrown = '', seed } = installed;
  return {
    contentBytes: BigInt(sizeBytes),
    contentDigest: `sha256:${contentSha256}`,
    table,
    partitions: partitions.slice(0, partitionsMax).map((each) => ({
      number: each.number,
      offsetBytes: BigInt(each.offsetBytes),
      sizeBytes: BigInt(each.sizeBytes),
      type: each.type,
      name: each.name,
      seed: each.number === seed?.number,
    })),
    grownBytes: BigInt(grown?.addedBytes ?? 0),
    notGrown,
  };
}
