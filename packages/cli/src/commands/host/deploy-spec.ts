/** Flags of an image's deployment, for hosts, their plans and pools. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  DeployProof,
  type DeploySpec,
  DeploySpecSchema,
  FirstBootFormat,
  FirstBootSchema,
} from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parsePair, textFlag } from '../../flags.ts';
import { parseDuration } from '../../output/time.ts';
import { readSource } from '../template/source.ts';

const yesNo = (brief: string) => ({ kind: 'boolean', optional: true, brief }) as const;

/** Flags of a deployment. */
export const deployFlags = {
  userData: textFlag('File with cloud-config, script or Ignition document; no secrets', 'file'),
  networkConfig: textFlag('File with cloud-init’s network configuration', 'file'),
  metaData: {
    ...textFlag('NAME=VALUE of the first boot’s meta data; repeatable', 'name=value'),
    variadic: true,
  },
  configDrive: yesNo('First boot from a config drive instead of NoCloud; Ignition needs it'),
  firstBoot: yesNo('Without it (--no-first-boot) the image finds nothing of itself'),
  netboot: yesNo('Boot the image’s kernel over the network each time; no disk is written'),
  keepDisk: {
    ...textFlag('Serial number or WWN of a disk that must not be written; repeatable', 'serial'),
    variadic: true,
  },
  proof: {
    kind: 'enum',
    values: ['phone-home', 'power-on'],
    optional: true,
    brief: 'How the host proves that it runs the image; power-on proves little',
  },
  proofTimeout: textFlag('How long it may take for that, as 20m', 'duration'),
  grow: yesNo('Let the last partition end with the disk, as it does unless --no-grow'),
} as const;

/** Values of `deployFlags`. */
export interface DeployFlags {
  readonly userData?: string;
  readonly networkConfig?: string;
  readonly metaData?: readonly string[];
  readonly configDrive?: boolean;
  readonly firstBoot?: boolean;
  readonly netboot?: boolean;
  readonly keepDisk?: readonly string[];
  readonly proof?: 'phone-home' | 'power-on';
  readonly proofTimeout?: string;
  readonly grow?: boolean;
}

/** The deployment that the flags set. */
export interface WantedDeploy {
  readonly deploy: DeploySpec;
  /** The fields that the flags set, below the deployment's own field; empty: none. */
  readonly paths: readonly string[];
}

/** Reads flags and the files that they name. Throws `UsageError`. */
export async function deployFrom(io: CommandIo, flags: DeployFlags): Promise<WantedDeploy> {
  const { proof, proofTimeout, grow, netboot, keepDisk } = flags;
  const { firstBoot, paths } = await firstBootFrom(io, flags);
  const deploy = create(DeploySpecSchema, {
    ...(firstBoot === undefined ? {} : { firstBoot }),
    ...(proof === undefined ? {} : { proof: proofs[proof] }),
    ...(proofTimeout === undefined ? {} : { proofTimeout: timeoutOf(proofTimeout) }),
    ...(grow === undefined ? {} : { grow }),
    ...(netboot === undefined ? {} : { netboot }),
    ...(keepDisk === undefined ? {} : { keepDisks: textsOf(keepDisk) }),
  });
  const others = { proof, proof_timeout: proofTimeout, grow, netboot, keep_disks: keepDisk };
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  return { deploy, paths: [...paths, ...given.map(([path]) => path)] };
}

const proofs = {
  'phone-home': DeployProof.PHONE_HOME,
  'power-on': DeployProof.POWER_ON,
} as const;

async function firstBootFrom(io: CommandIo, flags: DeployFlags) {
  const format = formatOf(flags);
  const { userData, networkConfig, metaData } = flags;
  const fields = {
    ...(format === undefined ? {} : { format }),
    ...(userData === undefined ? {} : { userData: await fileText(io, userData) }),
    ...(networkConfig === undefined ? {} : { networkConfig: await fileText(io, networkConfig) }),
    ...(metaData === undefined
      ? {}
      : { metaData: Object.fromEntries(textsOf(metaData).map((each) => pairOf(each))) }),
  };
  const names = {
    format: 'format',
    userData: 'user_data',
    networkConfig: 'network_config',
    metaData: 'meta_data',
  } as const;
  const paths = (Object.keys(fields) as (keyof typeof fields)[]).map((key) => {
    return `first_boot.${names[key]}`;
  });
  return { firstBoot: paths.length === 0 ? undefined : create(FirstBootSchema, fields), paths };
}

function formatOf({ configDrive, firstBoot, userData, networkConfig, metaData }: DeployFlags) {
  if (firstBoot === false) {
    if (configDrive === true) throw new UsageError('give --config-drive or --no-first-boot');
    if ([userData, networkConfig, metaData].some((each) => each !== undefined && each !== 'none')) {
      const flag = '--user-data, --network-config or --meta-data';
      throw new UsageError(`with --no-first-boot nobody reads ${flag}`);
    }
    return FirstBootFormat.NONE;
  }
  if (configDrive === true) return FirstBootFormat.CONFIG_DRIVE;
  return configDrive === false || firstBoot === true ? FirstBootFormat.NO_CLOUD : undefined;
}

function fileText(io: CommandIo, path: string): Promise<string> {
  return path === 'none' ? Promise.resolve('') : readSource(io, path);
}

function pairOf(given: string): readonly [string, string] {
  return parsePair('--meta-data', given);
}

/** "none" as the only item clears the list. */
function textsOf(texts: readonly string[]): string[] {
  return texts.join() === 'none' ? [] : [...texts];
}

function timeoutOf(given: string) {
  const ms = parseDuration(given);
  if (ms !== undefined) return durationFromMs(ms);
  throw new UsageError(`--proof-timeout is "${given}"; it must be like 90s, 30m or 2h`);
}
