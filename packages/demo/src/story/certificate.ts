/** A certificate of erasure: verified with nothing but two files and a public key. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { soundMachines } from '../fleet.ts';
import { announce, expectThat, type Stage, tell, tellCommand } from './stage.ts';

/** Exit code of the command for a certificate that does not verify. */
const doesNotVerify = 7;

export async function showCertificate(stage: Stage): Promise<void> {
  const { site } = stage;
  const [machine] = soundMachines(stage.fleet);
  if (machine === undefined) return;
  announce(stage, `A certificate of ${machine.name}, verified without the control plane.`);
  const list = await site.clients.erasures.listErasureCertificates({
    host: `hosts/${machine.name}`,
  });
  const [certificate] = list.erasureCertificates;
  if (certificate === undefined) throw new Error(`${machine.name} has no certificate`);
  const id = certificate.name.replace('erasureCertificates/', '');
  const get = await site.rackwright(['erasure', 'get', id, '--save', 'certificate.json']);
  expectThat(get.code === 0, get.output);
  const trust = await site.rackwright(['erasure', 'trust']);
  writeFileSync(join(site.folder, 'trust.pem'), `${trust.output}\n`);

  const args = ['erasure', 'verify', '--trust', 'trust.pem', 'certificate.json'];
  tellCommand(stage, args);
  const valid = await site.rackwright(args);
  tell(stage, valid.output);
  expectThat(valid.code === 0, 'the certificate does not verify');

  const other = changeOneByte(join(site.folder, 'certificate.json'), machine.name);
  tell(stage, `One byte of it is changed, so that it says ${other}:`);
  tellCommand(stage, args);
  const invalid = await site.rackwright(args);
  tell(stage, invalid.output);
  expectThat(invalid.code === doesNotVerify, 'the changed certificate was not refused');
}

/** Puts another host's name in place of the right one; answers that name. */
function changeOneByte(path: string, host: string): string {
  const text = readFileSync(path, 'latin1');
  const other = `${host.slice(0, -1)}${(Number(host.at(-1)) + 1) % 10}`;
  const changed = text.replace(`hosts/${host}"`, `hosts/${other}"`);
  if (changed === text) throw new Error(`the certificate does not name hosts/${host}`);
  writeFileSync(path, changed, 'latin1');
  return other;
}
