/** How a boot over the network is judged and described to people. Pure. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  BootAsker,
  type BootStep,
  BootStepKind,
  type BootTrace,
  BootTransport,
} from './gen/rackwright/v1/boot_pb.ts';
import { counted } from './words.ts';

/** A stage, as the object of a wait. */
const stages: Readonly<Record<BootStepKind, string>> = {
  [BootStepKind.UNSPECIFIED]: 'a step that is not known here',
  [BootStepKind.DISCOVER]: 'its question for an address',
  [BootStepKind.OFFER]: 'the agent’s offer',
  [BootStepKind.REQUEST]: 'its request for what it was offered',
  [BootStepKind.ACK]: 'the agent’s grant of the address',
  [BootStepKind.LOADER]: 'the boot loader',
  [BootStepKind.SCRIPT]: 'the boot script',
  [BootStepKind.KERNEL]: 'the kernel',
  [BootStepKind.INITRD]: 'the ramdisk',
  [BootStepKind.RUNNER]: 'the runner',
};

const askers: Readonly<Record<BootAsker, string>> = {
  [BootAsker.UNSPECIFIED]: '',
  [BootAsker.FIRMWARE]: 'the firmware',
  [BootAsker.LOADER]: 'the boot loader',
  [BootAsker.SYSTEM]: 'the ramdisk',
};

const transports: Readonly<Record<BootTransport, string>> = {
  [BootTransport.UNSPECIFIED]: '',
  [BootTransport.TFTP]: 'TFTP',
  [BootTransport.HTTP]: 'HTTP',
};

/** "the kernel" */
export function bootStepText(kind: BootStepKind): string {
  return stages[kind] ?? stages[BootStepKind.UNSPECIFIED];
}

/** A file that was sent whole, a runner that was accepted, or a DHCP message that was sent. */
function isDone({ kind, endTime, count }: BootStep): boolean {
  return kind >= BootStepKind.LOADER ? endTime !== undefined : count > 0;
}

function furthestOf(steps: readonly BootStep[]): BootStep | undefined {
  return steps.filter(isDone).toSorted((a, b) => b.kind - a.kind)[0];
}

type ObservedSteps = Pick<BootTrace, 'steps' | 'givesAddresses'>;

/** The next step, by the furthest one that has arrived. */
const nextSteps: Readonly<Record<BootStepKind, (seen: ObservedSteps) => BootStepKind>> = {
  [BootStepKind.UNSPECIFIED]: () => BootStepKind.DISCOVER,
  [BootStepKind.DISCOVER]: () => BootStepKind.OFFER,
  // Beside another server the request goes to that one.
  [BootStepKind.OFFER]: ({ steps, givesAddresses }) =>
    givesAddresses ? BootStepKind.REQUEST : afterAddress(steps),
  [BootStepKind.REQUEST]: () => BootStepKind.ACK,
  [BootStepKind.ACK]: ({ steps }) => afterAddress(steps),
  [BootStepKind.LOADER]: () => BootStepKind.SCRIPT,
  [BootStepKind.SCRIPT]: () => BootStepKind.KERNEL,
  [BootStepKind.KERNEL]: () => BootStepKind.INITRD,
  [BootStepKind.INITRD]: () => BootStepKind.RUNNER,
  [BootStepKind.RUNNER]: () => BootStepKind.UNSPECIFIED,
};

/**
 * The missing step, behind the furthest one that has arrived; UNSPECIFIED: the runner has arrived.
 */
export function missingBootStep(seen: ObservedSteps): BootStepKind {
  const next = nextSteps[furthestOf(seen.steps)?.kind ?? BootStepKind.UNSPECIFIED];
  return (next ?? nextSteps[BootStepKind.UNSPECIFIED])(seen);
}

/** A network card with a boot loader of its own needs no other. */
function afterAddress(steps: readonly BootStep[]): BootStepKind {
  const isLoader = steps.some(({ asker }) => asker === BootAsker.LOADER);
  return isLoader ? BootStepKind.SCRIPT : BootStepKind.LOADER;
}

/** "the boot got as far as the boot script; then the kernel never came" */
export function bootText(trace: BootTrace): string {
  const { steps, missing } = trace;
  if (missing === BootStepKind.UNSPECIFIED) return 'the runner came';
  const last = furthestOf(steps);
  const tried = steps.find(({ kind }) => kind === missing);
  const how = tried === undefined ? 'never came' : `did not come whole${problemOf(tried)}`;
  const subject = `${bootStepText(missing)} ${how}`;
  return last === undefined
    ? subject
    : `the boot got as far as ${bootStepText(last.kind)}; ${subject}`;
}

/** The waterfall: a line for each step, and one for the missing step. */
export function bootLines(trace: BootTrace): string[] {
  const lines = trace.steps.map((step) => stepLine(step, trace.startTime));
  const { missing, steps } = trace;
  const isTried = steps.some(({ kind }) => kind === missing);
  if (missing === BootStepKind.UNSPECIFIED) return lines;
  const never = `${''.padStart(offsetWidth)}  ${bootStepText(missing)}: never came`;
  return [...lines, ...(isTried ? [] : [never]), ...screenLines(trace)];
}

/** The last that the host wrote to its serial console; marked, for a machine wrote it. */
function screenLines({ lastScreen }: BootTrace): string[] {
  if (lastScreen.length === 0) return [];
  return ['its serial console showed last:', ...lastScreen.map((line) => `| ${line}`)];
}

/** The program that asked by DHCP, or how a file was sent; empty: unknown. */
export function bootStepBy({ kind, asker, transport }: BootStep): string {
  return (kind <= BootStepKind.ACK ? askers[asker] : transports[transport]) ?? '';
}

const offsetWidth = 9;

function stepLine(step: BootStep, start: Timestamp | undefined): string {
  const { kind, count, bytes, firstTime, lastTime, endTime } = step;
  const offset = offsetText(start, firstTime).padStart(offsetWidth);
  const by = bootStepBy(step);
  const parts = [
    ...(by ? [by] : []),
    ...(bytes > 0n ? [`${bytes} bytes`] : []),
    ...(endTime === undefined ? [] : [`done at ${offsetText(start, endTime)}`]),
    ...(count > 1 ? [`${counted(count, 'time')}, last at ${offsetText(start, lastTime)}`] : []),
  ];
  const more = parts.length === 0 ? '' : ` (${parts.join(', ')})`;
  return `${offset}  ${bootStepText(kind)}${more}${problemOf(step)}`;
}

function problemOf({ problem }: BootStep): string {
  return problem === '' ? '' : `: ${problem}`;
}

/** "+12.3 s" */
function offsetText(start: Timestamp | undefined, time: Timestamp | undefined): string {
  if (start === undefined || time === undefined) return '?';
  const seconds = (timestampMs(time) - timestampMs(start)) / 1_000;
  return `${seconds < 0 ? '' : '+'}${seconds.toFixed(1)} s`;
}
