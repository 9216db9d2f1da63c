/**
 * A machine under Secure Boot whose agent offers it a loader that nobody has signed: its firmware
 * fetches it and does not start it, so that nothing of ours runs. Another scenario waits longer:
 * once the boot stands still, people read in `host explain` what the firmware has said on the
 * serial console.
 */
import { until } from '../processes.ts';
import { usualDisks } from '../qemu-disks.ts';
import { createHost, powerOff, type Scenario, type Site } from '../site.ts';

/** From the order to the firmware's word; a boot takes a minute when the machine is busy. */
const REFUSAL_WAIT_MS = 400_000;
/** A boot of which nothing is seen for three minutes stands still. */
const SCREEN_WAIT_MS = 600_000;
/** EDK2's words for a loader that it may not start (EFI_ACCESS_DENIED). */
const REFUSED = /BdsDxe: failed to load Boot\d+ "UEFI PXEv4 .*: Access Denied/;
/** The same on a screen, whose lines are cut. */
const SHOWN = /BdsDxe: failed to load Boot\d+ "UEFI PXEv4 /;

const machinery: Pick<Scenario, 'machines' | 'boot'> = {
  machines: [{ name: 'h1', disks: usualDisks() }],
  boot: { firmware: 'uefi-secure', dhcp: 'reservation', loader: 'unsigned' },
};

/** The loader is refused, and nothing runs. */
export const unsignedScenario: Scenario = {
  ...machinery,
  run: (site) => refuse(site, async () => undefined),
};

/** The same, and what the firmware said is told. */
export const lastScreenScenario: Scenario = {
  ...machinery,
  run: (site) => refuse(site, () => checkLastScreen(site)),
};

async function refuse(site: Site, whenRefused: () => Promise<void>): Promise<void> {
  const { lab, findings, watch } = site;
  const [bmc] = lab.bmcs;
  if (bmc === undefined) throw new Error('the scenario has one machine');
  const { machine } = bmc;
  await createHost(site, bmc, 'available');
  const isRefused = (): boolean => REFUSED.test(machine.console());
  await until('a word of the firmware', REFUSAL_WAIT_MS, isRefused, machine.serialLog);
  const text = machine.console();
  findings.check(
    'the loader was fetched, and refused',
    text.includes('NBP file downloaded successfully'),
  );
  await whenRefused();
  await powerOff(site, bmc);
  findings.check('iPXE did not run', !machine.console().includes('iPXE'));
  const began = watch.history('h1').some(({ status }) =>
    status.run?.steps?.some(({ name, startTime }) => {
      return name.startsWith('erase') && startTime !== undefined;
    }),
  );
  findings.check('no step ran in the machine', !began);
}

/** As the agent has heard it by serial over LAN, and told it with the boot. */
async function checkLastScreen({ stack, findings }: Site): Promise<void> {
  let told = '';
  const isTold = async (): Promise<boolean> => {
    told = await stack.cli(['host', 'explain', 'h1']);
    return SHOWN.test(told);
  };
  const waited = until("the firmware's words in host explain", SCREEN_WAIT_MS, isTold);
  await waited.catch((error: unknown) => {
    findings.say(told.replaceAll(/^/gm, '       '));
    throw error;
  });
  findings.check("host explain shows the firmware's last words", true);
  findings.say(told.replaceAll(/^/gm, '       '));
}
