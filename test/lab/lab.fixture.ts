/** A lab with one machine that is on; it runs until it gets a signal. Used by lab.test.ts. */
import { ipmitool } from './ipmi-sim.ts';
import { startLab } from './lab.ts';
import { usualDisks } from './qemu-disks.ts';

const lab = await startLab({ machines: [{ name: 'a', disks: usualDisks(8) }] });
const [bmc] = lab.bmcs;
if (bmc === undefined) throw new Error('one machine was asked for');
await ipmitool(lab.network, bmc.address(), ['chassis', 'power', 'on']);
process.stdout.write(
  `${JSON.stringify({ folder: lab.folder, namespace: lab.network.namespace })}\n`,
);
setInterval(() => {}, 60_000);
