/**
 * Steps on RAID volumes, by the BMC. The content of a deleted volume's drives is lost, and
 * afterwards the machine shows other disks. So the control plane allows these steps only in cleans
 * that boot anew, read all disks, and erase them.
 */
import { create } from '@bufbuild/protobuf';
import { failed, type RaidType, raidTypes, type WantedVolume } from '@rackwright/bmc';
import { ArgumentType, agent, applyVolumesStep, RerunClass } from '@rackwright/messages';
import { invalid, problemIn, type Read, valid } from '@rackwright/platform';
import type { OutOfBandStep } from './out-of-band-step.ts';

const volumesMax = 16;
const drivesMax = 64;
/** Instead of a list: the controller is to hold none. */
const none = 'none';

const types = Object.keys(raidTypes).join(', ');
const form = 'TYPE=DRIVE+DRIVE, more of them behind ";"';
const noVolumes = failed('unsupported', 'the protocol of this BMC has no RAID volumes');

const text = (name: string, description: string) => ({
  ...{ name, description, required: true, type: ArgumentType.STRING },
});

const applyVolumes: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: applyVolumesStep,
    priority: 0,
    // A change that was ordered is never ordered again automatically.
    rerunClass: RerunClass.CHECK_FIRST,
    destructive: true,
    abortable: false,
    rebootAfter: true,
    description:
      'Makes a storage controller hold these RAID volumes and no others, and reads them back. A ' +
      'volume of that type and those drives stays; the data of the others is lost.',
    typedArguments: [
      text('controller', 'The storage controller, as the BMC calls it.'),
      text('volumes', `All its volumes: ${form}; or ${none}. TYPE is one of ${types}.`),
    ],
  }),
  problem: ({ controller = '', volumes = '' }) => {
    if (!/^[!-~]{1,128}$/.test(controller)) {
      return 'controller must be 1 to 128 printable characters without spaces';
    }
    return problemIn(parseVolumes(volumes));
  },
  run: async (driver, { controller = '', volumes: listed = '' }, signal, hooks) => {
    const parsed = parseVolumes(listed);
    if (parsed.kind === 'bad') return failed('volumesRefused', parsed.problem);
    const order = { controller, volumes: parsed.value, checkOnly: hooks.isCheck };
    return (await driver.applyVolumes?.(order, hooks, signal)) ?? noVolumes;
  },
  canCheck: true,
};

export const raidSteps: readonly OutOfBandStep[] = [applyVolumes];

/** The volumes of "RAID1=A+B;RAID0=C", or what is wrong with the text. */
export function parseVolumes(listed: string): Read<readonly WantedVolume[]> {
  if (listed === none) return valid([]);
  const volumes: WantedVolume[] = [];
  for (const one of listed.split(';')) {
    const volume = parseVolume(one);
    if (volume.kind === 'bad') return volume;
    volumes.push(volume.value);
  }
  const drives = volumes.flatMap((one) => one.drives);
  const twice = drives.find((drive, at) => drives.indexOf(drive) !== at);
  if (twice !== undefined) {
    return invalid(`volumes names drive ${twice} twice: a volume has whole drives`);
  }
  if (volumes.length > volumesMax || drives.length > drivesMax) {
    return invalid(`volumes has at most ${volumesMax} volumes of ${drivesMax} drives`);
  }
  return valid(volumes);
}

function parseVolume(one: string): Read<WantedVolume> {
  const [, type = '', listed = ''] = /^(\w{1,16})=([!-:<-~]{1,4096})$/.exec(one) ?? [];
  const drives = listed.split('+');
  if (!isRaidType(type) || drives.some((drive) => !/^.{1,128}$/.test(drive))) {
    return invalid(
      `volumes must be ${form}, or ${none}; ${JSON.stringify(one.slice(0, 40))} is not`,
    );
  }
  const least = raidTypes[type];
  if (drives.length < least) return invalid(`volumes: a ${type} needs ${least} drives or more`);
  return valid({ raidType: type, drives });
}

function isRaidType(text: string): text is RaidType {
  return Object.hasOwn(raidTypes, text);
}
