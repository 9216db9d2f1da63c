/**
 * The step `burnin.memory`: fills free memory with a pattern, then reads all of it and compares,
 * pattern after pattern. Each page holds its own place, so a page that answers for another one is
 * found. The kernel and running programs keep their memory: that is never tested.
 */
import { BurnInKind, burnInMemoryStep, cleanSteps, counted } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { BurnInMachine, MemoryErrors } from '../machine/burn-in-machine.ts';
import type { Step, StepContext, StepResult } from '../steps/step.ts';
import { readNumbers } from './arguments.ts';
import { TemperatureMonitor } from './heat.ts';
import { contentOf, Pattern, pieceBytesMax } from './pattern.ts';
import { endOf, type Finding, failedResult, perSecond, speedText, stateText } from './result.ts';

const pageBytes = 4_096;
/** The size of one allocation, bytes. */
const blockBytes = 64 * pieceBytesMax;
/** Left to everything else, for every share, bytes. */
const leftBytesMin = 256 * pieceBytesMax;
/** Pages that are found wrong until it is enough. */
const errorsMax = 10_000;

export const burnInMemory: Step = {
  description: cleanSteps[burnInMemoryStep],
  run: async (context) => {
    const { burnIn } = context.machine;
    if (burnIn === undefined) return failedResult('unsupported', 'this machine has no free memory');
    const read = readNumbers(cleanSteps[burnInMemoryStep], context.order.arguments);
    if (read.kind === 'bad') return failedResult('invalidArgument', read.problem);
    return await workMemory(context, burnIn, read.value);
  },
};

/** Content of the patterns in their order; the first one finds most. */
function* contents(seed: Uint8Array): Generator<Uint8Array<ArrayBuffer>> {
  const random = contentOf(seed);
  for (;;) {
    yield random.slice();
    yield random.map((byte) => byte ^ 0xff);
    for (const byte of [0x00, 0xff, 0x55, 0xaa]) yield new Uint8Array(pieceBytesMax).fill(byte);
  }
}

interface Work {
  readonly context: StepContext;
  readonly heat: TemperatureMonitor;
  readonly blocks: readonly Uint8Array[];
  readonly bytes: number;
  readonly durationMs: number;
  readonly beganMs: number;
  passes: number;
  /** Bytes of the pass that is under way, written and read. */
  doneBytes: number;
  wrote: { bytes: number; ms: number };
  read: { bytes: number; ms: number };
  errors: number;
  first: Finding | undefined;
}

async function workMemory(
  context: StepContext,
  machine: BurnInMachine,
  numbers: Readonly<Record<string, number>>,
): Promise<StepResult> {
  const { duration = 0, share = 0, corrected_max: correctedMax = 0 } = numbers;
  const { clock, order } = context;
  const startMs = clock.nowMs();
  const heat = new TemperatureMonitor(context, machine, numbers['celsius_max'] ?? 0);
  const before = await machine.memoryErrors();
  const free = await machine.availableBytes();
  const blocks = takeMemory(machine, Math.min((free * share) / 100, free - leftBytesMin));
  if (blocks.length === 0) {
    const least = (leftBytesMin + blockBytes) / pieceBytesMax;
    const has = Math.floor(free / pieceBytesMax);
    return failedResult('unsupported', `${has} MiB of memory are free; ${least} MiB are needed`);
  }
  const work: Work = {
    ...{ context, heat, blocks, bytes: blocks.length * blockBytes, durationMs: duration * 1_000 },
    ...{ beganMs: clock.suspendAwareMs(), passes: 0, doneBytes: 0, errors: 0, first: undefined },
    ...{ wrote: { bytes: 0, ms: 0 }, read: { bytes: 0, ms: 0 } },
  };
  try {
    for (const content of contents(order.challengeSeed)) {
      if (!(await workOnce(work, new Pattern(content, pageBytes)))) break;
    }
  } finally {
    for (const { buffer } of blocks) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
  }
  const seen = countedBetween(before, await machine.memoryErrors());
  const { problems, part } = judge(work, seen, correctedMax);
  return endOf(context, { kind: BurnInKind.MEMORY, startMs, parts: [part], heat, problems });
}

/** All available memory up to so many bytes, in blocks. */
function takeMemory(machine: BurnInMachine, bytesMax: number): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  while ((blocks.length + 1) * blockBytes <= bytesMax) {
    const block = machine.allocate(blockBytes);
    if (block === undefined) break;
    blocks.push(block);
  }
  return blocks;
}

/** Writes one pattern and reads it back; false when no further pass begins. */
async function workOnce(work: Work, pattern: Pattern): Promise<boolean> {
  work.doneBytes = 0;
  const wrote = await overAll(work, work.wrote, 'writes', (piece, offset) => {
    piece.set(pattern.at(offset, piece.length));
  });
  if (!wrote) return false;
  const read = await overAll(work, work.read, 'reads', (piece, offset) => {
    const difference = pattern.differenceAt(offset, piece);
    if (difference === undefined) return;
    work.errors += difference.units;
    if (work.first !== undefined) return;
    const bits = difference.bits.toString(2).padStart(8, '0');
    const { belongsAt } = difference;
    const other = belongsAt === undefined ? '' : `; its page is as that at ${belongsAt} should be`;
    const at = offset + difference.byteOffset;
    work.first = { text: `byte ${at} differs in the bits ${bits}${other}` };
  });
  if (!read) return false;
  work.passes += 1;
  return work.context.clock.suspendAwareMs() - work.beganMs < work.durationMs;
}

/** Does something to every piece, and lets others run now and then; false when it was ended. */
async function overAll(
  work: Work,
  total: Work['wrote'],
  action: string,
  act: (piece: Uint8Array, offset: number) => void,
): Promise<boolean> {
  const { context, heat, blocks } = work;
  const { clock, signal } = context;
  for (const [index, block] of blocks.entries()) {
    tell(work, total, action);
    await pause(clock, 0);
    if (signal.aborted || work.errors >= errorsMax || (await heat.read())) return false;
    const beganMs = clock.suspendAwareMs();
    for (let at = 0; at < blockBytes; at += pieceBytesMax) {
      act(block.subarray(at, at + pieceBytesMax), index * blockBytes + at);
    }
    total.ms += clock.suspendAwareMs() - beganMs;
    total.bytes += blockBytes;
    work.doneBytes += blockBytes;
  }
  return true;
}

function tell(work: Work, total: Work['wrote'], action: string): void {
  const { context, passes, doneBytes, bytes, beganMs, durationMs, heat, errors } = work;
  const elapsed = (context.clock.suspendAwareMs() - beganMs) / durationMs;
  const fraction = passes > 0 ? elapsed : Math.min(elapsed, doneBytes / (2 * bytes));
  const rate = total.ms === 0 ? '' : `, ${speedText(total.bytes, total.ms)}`;
  const mib = bytes / pieceBytesMax;
  const text = `${mib} MiB, pass ${passes + 1} ${action}${rate}, ${stateText(errors, heat)}`;
  context.reportProgress(Math.min(99, Math.floor(100 * fraction)), text);
}

/** The machine's counts meanwhile; undefined: it counts nothing. */
function countedBetween(
  before: MemoryErrors | undefined,
  after: MemoryErrors | undefined,
): MemoryErrors | undefined {
  if (before === undefined || after === undefined) return undefined;
  return {
    corrected: Math.max(0, after.corrected - before.corrected),
    uncorrected: Math.max(0, after.uncorrected - before.uncorrected),
  };
}

function judge(work: Work, seen: MemoryErrors | undefined, correctedMax: number) {
  const { corrected = 0, uncorrected = 0 } = seen ?? {};
  const { errors, first, passes, wrote, read } = work;
  const limit = `${correctedMax} ${correctedMax === 1 ? 'is' : 'are'} allowed`;
  const problems = [
    ...(errors === 0 ? [] : [`${counted(errors, 'wrong page')}: ${first?.text}`]),
    ...(uncorrected === 0 ? [] : [`${counted(uncorrected, 'error')} that ECC could not correct`]),
    ...(corrected <= correctedMax
      ? []
      : [`${counted(corrected, 'error')} that ECC corrected; at most ${limit}`]),
  ];
  const part = {
    name: 'memory',
    bytes: BigInt(work.bytes),
    passes: BigInt(passes),
    errors: BigInt(errors + uncorrected),
    correctedErrors: BigInt(corrected),
    writtenPerSecond: perSecond(wrote.bytes, wrote.ms),
    readPerSecond: perSecond(read.bytes, read.ms),
    finding: first?.text ?? problems[0] ?? '',
  };
  return { problems, part };
}
