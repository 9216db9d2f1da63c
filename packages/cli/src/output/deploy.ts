/** How deployments and root disks are shown. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { sizeText } from '@rackwright/disk-image/size';
import {
  DeployProof,
  type DeploySpec,
  type FirstBoot,
  FirstBootFormat,
  type RootDiskHints,
  type WrittenDisk,
} from '@rackwright/messages';
import { duration } from './time.ts';

/** How an image is deployed, in a line: "NoCloud, user data of 812 bytes; phones home in 20m". */
export function deployText(deploy: DeploySpec | undefined): string {
  const { firstBoot, proof, proofTimeout, grow, netboot, keepDisks = [] } = deploy ?? {};
  if (deploy === undefined) return '';
  const isWeak = proof === DeployProof.POWER_ON;
  const within = proofTimeout === undefined ? '' : ` within ${duration(durationMs(proofTimeout))}`;
  const parts = [
    firstBootText(firstBoot),
    isWeak ? 'proved by power-on alone' : `phones home${within}`,
    netboot === true ? 'booted over the network' : '',
    grow === false ? 'not grown' : '',
    keepDisks.length === 0 ? '' : `never onto ${keepDisks.join(', ')}`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function firstBootText(firstBoot: FirstBoot | undefined): string {
  const { format, userData = '', networkConfig = '', metaData = {} } = firstBoot ?? {};
  if (format === FirstBootFormat.NONE) return 'nothing for the first boot';
  const bytes = (text: string) => `${new TextEncoder().encode(text).length} bytes`;
  const names = Object.keys(metaData);
  const parts = [
    format === FirstBootFormat.CONFIG_DRIVE ? 'config drive' : 'NoCloud',
    userData === '' ? '' : `user data of ${bytes(userData)}`,
    networkConfig === '' ? '' : `network configuration of ${bytes(networkConfig)}`,
    names.length === 0 ? '' : `meta data ${names.join(' ')}`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** "DISK-1: sha256:…, grown by 460 GB"; '' where no disk was written. */
export function writtenText(disk: WrittenDisk | undefined): string {
  if (disk === undefined) return '';
  const { whole, contentDigest, grownBytes, notGrown, bootEntryProblem } = disk;
  if (!whole) return `${disk.disk}: a part of an image, which does not boot`;
  const parts = [
    contentDigest,
    grownBytes === 0n ? '' : `grown by ${sizeText(grownBytes)}`,
    notGrown === '' ? '' : `not grown: ${notGrown}`,
    bootEntryProblem === '' ? '' : `no boot entry: ${bootEntryProblem}`,
  ];
  return `${disk.disk}: ${parts.filter((part) => part !== '').join(', ')}`;
}

/** "serial=S1, at least 480 GB"; '' without any hint. */
export function rootDiskText(hints: RootDiskHints | undefined): string {
  if (hints === undefined) return '';
  const { serial, wwn, model, byPath, rotational, sizeBytes, minSizeBytes } = hints;
  const named = { serial, wwn, model, 'by-path': byPath };
  const parts = [
    ...Object.entries(named).map(([name, value]) => (value === '' ? '' : `${name}=${value}`)),
    rotational === undefined ? '' : `rotational=${rotational ? 'yes' : 'no'}`,
    sizeBytes === 0n ? '' : `size=${sizeBytes}`,
    minSizeBytes === 0n ? '' : `at least ${sizeText(minSizeBytes)}`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}
