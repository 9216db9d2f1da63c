/** What the stories of one machine share: its image, how it gets it, and how it is judged. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostView } from '../host-watch.ts';
import { buildImages, type LabImage } from '../image/build.ts';
import { type LabRegistry, type PushedImage, startRegistry } from '../image/registry.ts';
import type { LabBmc } from '../ipmi-sim.ts';
import { until } from '../processes.ts';
import type { LabMachine } from '../qemu.ts';
import { hasEnded, RUN_LIMIT_MS, type Site } from '../site.ts';
import { introduce, isAvailable, TAG, USER_DATA } from './deploy.ts';
import { checkBoots } from './deploy-judge.ts';

export const HOST = 'h1';
export const VERSION = '1';

/** What the stories share. */
export interface Story<I> {
  readonly site: Site;
  readonly bmc: LabBmc;
  readonly registry: LabRegistry;
  readonly image: I;
  /** By digest. */
  readonly reference: string;
}

/** A disk of its own, of the only version that there is. */
export async function buildDisk(
  folder: string,
  files?: Readonly<Record<string, string>>,
): Promise<LabImage> {
  const [image] = await buildImages(folder, [VERSION], files);
  if (image === undefined) throw new Error('one image is built');
  return image;
}

/** Makes the image known to the site and waits for the machine. */
export async function publish<I extends PushedImage>(
  site: Site,
  bmc: LabBmc,
  build: (folder: string) => Promise<I>,
): Promise<Story<I>> {
  const { lab, watch, findings } = site;
  const image = await build(join(lab.folder, 'images'));
  const registry = await startRegistry(lab);
  await introduce(site, registry);
  const reference = `${registry.repository}@${await registry.push(image, TAG)}`;
  await watch.waitFor(HOST, 'h1 is available', RUN_LIMIT_MS, isAvailable);
  findings.say('the machine is available');
  return { site, bmc, registry, image, reference };
}

/** Asks for the image, and waits for the end of the run. */
export async function provision(
  { site, reference }: Story<unknown>,
  args: readonly string[],
): Promise<HostView> {
  const { lab, stack, watch } = site;
  const userData = join(lab.folder, 'user-data');
  writeFileSync(userData, USER_DATA);
  await stack.cli([
    'host',
    'provision',
    HOST,
    reference,
    '--yes',
    '--user-data',
    userData,
    ...args,
  ]);
  return await watch.waitFor(HOST, 'the end of the provision', RUN_LIMIT_MS, (host) => {
    return hasEnded(host, 'PROVISION');
  });
}

/** It is in service with this image, and nothing is wrong with it. */
export function checkInService({ site, reference }: Story<unknown>, when: string): void {
  const host = site.watch.latest(HOST);
  const { state, image, dirty, lastError } = host?.status ?? {};
  const isIn = state === 'HOST_STATE_PROVISIONED' && image === reference && lastError === undefined;
  const found = JSON.stringify({ state, image, dirty, lastError });
  site.findings.check(`${HOST} is provisioned ${when}`, isIn, found);
}

/** The boot entries of images that its UEFI firmware has started, in order. */
export function entriesStarted(machine: LabMachine): readonly string[] {
  const entry = /BdsDxe: starting (Boot[0-9A-F]{4}) "Rackwright image" from HD\(/g;
  return [...machine.console().matchAll(entry)].map(([, name = '']) => name);
}

/** Waits until the image has started for the n-th time: its words are on the serial port. */
export async function checkStarts({ site, bmc }: Story<unknown>, times: number): Promise<void> {
  const { machine } = bmc;
  const starts = (): boolean => [...machine.console().matchAll(/lab: .*\r?\n/g)].length >= times;
  await until(`start ${times} of the image`, RUN_LIMIT_MS, starts, machine.serialLog);
  const versions = Array.from({ length: times }, () => VERSION);
  checkBoots(site.findings, machine, versions);
}
