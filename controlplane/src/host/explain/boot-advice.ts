/** What a person can do about a boot that stopped, by the step that was not reached. */
import { BootStepKind } from '@rackwright/messages';
import { changeLine, inspectLine, type Line } from './lines.ts';

/** The names in the lines, in the form for commands. */
interface BootAdviceNames {
  readonly host: string;
  readonly rack: string;
  readonly macs: readonly string[];
}

type Advice = (named: BootAdviceNames) => readonly Line[];

const holdUp: Advice = ({ host }) => [
  inspectLine(`see what holds it up at the console of hosts/${host}`),
];

const seeRack = ({ rack }: BootAdviceNames): Line =>
  inspectLine(`see the faults of its rack: rackwright rack explain ${rack}`);

const httpFile: Advice = ({ host, rack }) => [
  inspectLine(
    `see at the console of hosts/${host} how the download ends, and that HTTP to the agent of ` +
      `racks/${rack} is not cut on the way`,
  ),
];

const table: Readonly<Record<BootStepKind, Advice>> = {
  [BootStepKind.UNSPECIFIED]: holdUp,
  [BootStepKind.DISCOVER]: (named) => [
    inspectLine(
      `see that the network card ${named.macs.join(', ')} of hosts/${named.host} has link, is on ` +
        `the provisioning network of racks/${named.rack}, and that its firmware boots from it`,
    ),
    changeLine(`or correct its boot MACs: rackwright host update ${named.host} --mac MAC`),
    seeRack(named),
  ],
  [BootStepKind.OFFER]: (named) => [
    inspectLine(
      'see why the agent makes it no offer: another DHCP server, or a range that is used up',
    ),
    seeRack(named),
  ],
  [BootStepKind.REQUEST]: (named) => [
    inspectLine(
      'see whether another DHCP server answers it, and whether the agent’s answers reach it',
    ),
    seeRack(named),
  ],
  [BootStepKind.ACK]: (named) => [seeRack(named)],
  [BootStepKind.LOADER]: ({ host, rack }) => [
    inspectLine(
      `see that nothing between hosts/${host} and the agent of racks/${rack} drops TFTP (UDP 69 ` +
        'and high ports) or HTTP, and that the agent has a loader for its firmware',
    ),
  ],
  [BootStepKind.SCRIPT]: ({ host }) => [
    inspectLine(
      `see at the console of hosts/${host} whether the boot loader drives its network card, and ` +
        'whether the firmware refuses it (Secure Boot)',
    ),
  ],
  [BootStepKind.KERNEL]: httpFile,
  [BootStepKind.INITRD]: httpFile,
  [BootStepKind.RUNNER]: ({ host, rack }) => [
    inspectLine(
      `see at the console of hosts/${host} whether the kernel starts, drives its network card, ` +
        `gets an address, and reaches the runners’ port of the agent of racks/${rack}`,
    ),
  ],
};

/** Never empty: for an unknown step, and without a boot, the lines that always help. */
export function adviceOnBoot(missing: BootStepKind, named: BootAdviceNames): readonly Line[] {
  return (table[missing] ?? holdUp)(named);
}
