/**
 * `node redfish-service.main.ts CONFIG`: the Redfish service of a machine's BMC, beside `ipmi_sim`
 * at the same address. It switches the machine through the same `chassis-control.sh`.
 *
 * 1. What is in the virtual drive outlives the machine's power, as on a real BMC: the medium is put
 *    in by QMP, at once when the machine is on, else at each power-on before it runs.
 * 2. The medium is fetched whole from its URL; a URL that gives nothing leaves the drive empty.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '@rackwright/platform';
import { type PowerOnBoot, startRedfishBmc } from '@rackwright/sim/redfish';
import { runProgram } from './processes.ts';
import type { RedfishServiceConfig } from './redfish-service.ts';
import { ejectMedium, insertMedium } from './virtual-drive.ts';

const [, , configFile = ''] = process.argv;
const config = JSON.parse(readFileSync(configFile, 'utf8')) as RedfishServiceConfig;
const { folder, address, user, password, identity, controlScript } = config;
const medium = join(folder, 'medium.iso');
const mediumIn = join(folder, 'medium-in');
const PUT_MEDIUM = join(import.meta.dirname, './put-medium.main.ts');
const FETCH_LIMIT_MS = 120_000;

const devices: Readonly<Record<PowerOnBoot['device'], string>> = {
  none: 'none',
  pxe: 'pxe',
  uefiHttp: 'pxe',
  disk: 'default',
  cd: 'cdrom',
};

const say = (text: string): void => void process.stdout.write(`${Date.now() / 1000} ${text}\n`);

/** Acts on the machine one after another: a medium that is ordered first is in at the power-on. */
let acting: Promise<void> = Promise.resolve();
function inOrder(act: () => Promise<void>): Promise<void> {
  const done = acting.then(act);
  acting = done.catch(() => undefined);
  return done;
}

async function control(...words: readonly string[]): Promise<void> {
  await runProgram(controlScript, [folder, '0x20', 'set', ...words]);
}

/** By the process that the control script has started. */
function isOn(): boolean {
  try {
    const pidFile = join(folder, 'qemu.pid');
    const pid = readFileSync(pidFile, 'utf8').trim();
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(pidFile);
  } catch {
    return false;
  }
}

async function changeMedium(url: string | undefined): Promise<void> {
  rmSync(mediumIn, { force: true });
  if (isOn()) await ejectMedium({ folder });
  rmSync(medium, { force: true });
  say(url === undefined ? 'ejected' : `inserted ${url}`);
  if (url === undefined) return;
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_LIMIT_MS) });
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  writeFileSync(medium, Buffer.from(await response.arrayBuffer()));
  const words = [process.execPath, PUT_MEDIUM, folder, medium].map((word) => `'${word}'`);
  writeFileSync(mediumIn, `#!/bin/sh\nexec ${words.join(' ')}\n`, { mode: 0o755 });
  if (isOn()) await insertMedium({ folder }, medium);
}

await startRedfishBmc({
  ...{ address, port: 443, user, password, identity },
  machine: {
    isOn,
    powerOn: ({ device }) =>
      inOrder(async () => {
        await control('boot', devices[device]);
        await control('power', '1');
      }),
    powerOff: () => inOrder(() => control('power', '0')),
    softOff: () => inOrder(() => control('shutdown')),
    medium: (url) => inOrder(() => changeMedium(url)),
  },
  habits: { bootTargets: ['None', 'Pxe', 'Hdd', 'Cd'], virtualMedia: 'manager' },
  onMachineError: (error) => say(errorText(error)),
});
say('ready');
