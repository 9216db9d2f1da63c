/**
 * `--check`: a machine that nobody has touched comes up through its BMC, is cleaned in our ramdisk
 * and shown as available, and every claim about it holds when looked at from outside.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBlockLog, touchedBytes } from '../blocklog.ts';
import { watchBootPath } from '../boot-path.ts';
import { checkCable } from '../cable.ts';
import { inspectDisk, isUntouched } from '../disk-image.ts';
import { hasVirtualDrive, hostPolicy } from '../firmware.ts';
import { tryProgram } from '../processes.ts';
import { type LabMachine } from '../qemu.ts';
import { usualDisks } from '../qemu-disks.ts';
import { createHost, powerOff, RUN_LIMIT_MS, type Scenario, type Site } from '../site.ts';
import { printStages } from '../stages.ts';
import { watchVirtualDrive } from '../virtual-drive.ts';

/** A certificate, as the API shows it in JSON. */
export interface CertificateView {
  readonly name: string;
  readonly deviceSerial: string;
}

/** The scenario. */
export const checkScenario: Scenario = {
  machines: [{ name: 'h1', disks: usualDisks() }],
  run: async (site) => {
    const { lab, watch, findings } = site;
    const [bmc] = lab.bmcs;
    if (bmc === undefined) throw new Error('the scenario has one machine');
    const { machine } = bmc;
    checkFull(site, machine);
    const checkBootPath = await watchBootPath(site, machine);
    await createHost(site, bmc, 'available', hostPolicy(lab.boot.firmware));
    const isOfMedium = hasVirtualDrive(lab.boot.firmware);
    const checkDrive = isOfMedium ? await watchVirtualDrive(site, bmc) : undefined;
    await watch.waitFor('h1', 'h1 is available', RUN_LIMIT_MS, isAvailable);
    findings.check('h1 is available', true);
    await checkBootPath();
    await checkDrive?.();
    await checkCable(site, machine);
    await powerOff(site, bmc);
    checkDisks(site, machine);
    await checkCertificates(site, machine);
    printStages(site, machine);
  },
};

function isAvailable(host: { readonly status: { readonly state: string } }): boolean {
  return host.status.state === 'HOST_STATE_AVAILABLE';
}

/** Something is there to be erased. */
export function checkFull({ findings }: Site, machine: LabMachine): void {
  for (const { name, image, patternName } of machine.disks) {
    findings.check(`${name} is full of its pattern`, isUntouched(image, patternName));
  }
}

/** The disk files and the devices' own logs, as read from outside. */
export function checkDisks({ findings }: Site, machine: LabMachine): void {
  for (const disk of machine.disks) {
    const verdict = inspectDisk(disk.image, disk.patternName);
    const text = JSON.stringify(verdict);
    findings.check(
      `${disk.name}: the pattern is gone from the file`,
      verdict.withPattern === 0,
      text,
    );
    const entries = machine.blockLogs(disk).flatMap((log) => readBlockLog(log, disk.bytes));
    const touched = touchedBytes(entries, ['write', 'discard'], disk.bytes);
    findings.check(
      `${disk.name}: its own log covers every byte`,
      touched === disk.bytes,
      `${touched}`,
    );
  }
}

/** Each disk has a certificate that holds, and that does not hold once it is changed. */
export async function checkCertificates(site: Site, machine: LabMachine): Promise<void> {
  const { lab, stack, findings } = site;
  const trust = join(lab.folder, 'trust.pem');
  writeFileSync(trust, await stack.cli(['erasure', 'trust']));
  const listed = JSON.parse(
    await stack.cli(['erasure', 'list', '--host', machine.name, '-o', 'json']),
  ) as { readonly erasureCertificates?: readonly CertificateView[] };
  const certificates = listed.erasureCertificates ?? [];
  for (const disk of machine.disks) {
    const own = certificates.filter((one) => one.deviceSerial === disk.serial);
    findings.check(`${disk.name} has one certificate`, own.length === 1, `${own.length}`);
  }
  for (const { name } of certificates) {
    const id = name.replace(/^.*\//, '');
    const file = join(lab.folder, `${id}.json`);
    await stack.cli(['erasure', 'get', id, '--save', file]);
    await checkVerification(site, file, trust);
  }
}

async function checkVerification(site: Site, file: string, trust: string): Promise<void> {
  const { findings } = site;
  const verify = async (): Promise<readonly [boolean, boolean]> => [
    await isVerifiedByUs(site, file, trust),
    await isVerifiedByOpenssl(file, trust),
  ];
  const label = file.replace(/^.*\//, '');
  const [ours, openssl] = await verify();
  findings.check(`${label} verifies offline with our command`, ours);
  findings.check(`${label} verifies with openssl`, openssl);
  for (const changed of [file, `${file}.sig`]) {
    const original = readFileSync(changed);
    const bytes = Buffer.from(original);
    const middle = Math.floor(bytes.length / 2);
    bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
    writeFileSync(changed, bytes);
    const [oursNow, opensslNow] = await verify();
    const what = changed === file ? 'statement' : 'signature';
    findings.check(`${label} with one bit of its ${what} changed fails with ours`, !oursNow);
    findings.check(`${label} with one bit of its ${what} changed fails with openssl`, !opensslNow);
    writeFileSync(changed, original);
  }
}

/** By our command, in an empty network namespace: it cannot ask anybody. */
export async function isVerifiedByUs(site: Site, file: string, trust: string): Promise<boolean> {
  const command = [...site.stack.program, 'erasure', 'verify', '--trust', trust, file];
  return (await tryProgram(['unshare', '--net', ...command], {})).code === 0;
}

export async function isVerifiedByOpenssl(file: string, trust: string): Promise<boolean> {
  const args = ['dgst', '-sha256', '-verify', trust, '-signature', `${file}.sig`, file];
  return (await tryProgram(['openssl', ...args], {})).code === 0;
}
