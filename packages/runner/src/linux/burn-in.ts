/** The processors, memory and sensors of the Linux machine we run on, for burn-ins. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { errorText } from '@rackwright/platform';
import { calculations } from '../burn-in/known-results.ts';
import type {
  BurnInMachine,
  Calculation,
  MemoryErrors,
  NetworkCard,
} from '../machine/burn-in-machine.ts';
import { namesIn, readNumber, readText, resolvePath } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';

/** Sensors that are read at once, of all chips together. */
const sensorsMax = 512;
const heapMib = 64;
/** The memory that a simulated machine offers, bytes. */
const softwareBytes = 384 * 1024 * 1024;

export function linuxBurnIn(roots: SysRoots): BurnInMachine {
  return {
    threads: availableParallelism(),
    calculate: startThread,
    availableBytes: async () => {
      const meminfo = await readText(roots.proc, 'meminfo');
      return Number(/^MemAvailable:\s+(\d+) kB/m.exec(meminfo)?.[1] ?? 0) * 1_024;
    },
    allocate,
    celsius: () => readCelsius(roots.sys),
    memoryErrors: () => readMemoryErrors(roots.sys),
    networkCards: () => readNetworkCards(roots.sys),
  };
}

/** One thread and little memory of the machine around it, which has no sensors. */
export const softwareBurnIn: BurnInMachine = {
  threads: 1,
  calculate: startThread,
  availableBytes: async () => softwareBytes,
  allocate,
  celsius: async () => undefined,
  memoryErrors: async () => undefined,
  networkCards: async () => [],
};

function allocate(bytes: number): Uint8Array | undefined {
  try {
    return new Uint8Array(bytes);
  } catch {
    return undefined; // V8 throws a RangeError when the kernel has no more
  }
}

function startThread(
  report: (results: readonly string[]) => void,
  ended: (problem: string) => void,
): Calculation {
  const worker = new Worker(threadText, {
    ...{ eval: true, name: 'burn-in', env: {}, execArgv: [] },
    resourceLimits: { maxOldGenerationSizeMb: heapMib },
  });
  let isStopped = false;
  const end = (problem: string): void => {
    if (!isStopped) ended(problem);
    isStopped = true;
  };
  worker.on('message', report);
  worker.on('error', (error) => end(errorText(error)));
  worker.on('exit', (code) => end(`exit ${code}`));
  return {
    stop: () => {
      isStopped = true;
      return worker.terminate();
    },
  };
}

/** Runs in the thread, from its own text: it may name nothing outside itself. */
function calculateInThread(parts: typeof calculations): void {
  const { parentPort } = process.getBuiltinModule('node:worker_threads');
  const { createHash } = process.getBuiltinModule('node:crypto');
  const words = new Uint32Array(256 * 1024);
  let state = 0x9e3779b9;
  for (let at = 0; at < words.length; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[at] = state;
  }
  const bytes = new Uint8Array(words.buffer);
  for (;;) {
    const results = parts.map((calculate) => {
      const result = calculate(bytes);
      return typeof result === 'string'
        ? result
        : createHash('sha256').update(result).digest('hex');
    });
    parentPort?.postMessage(results, []);
  }
}

const threadText = `(${calculateInThread.toString()})([${calculations.map(String).join(',')}])`;

/** The highest of hwmon's temperatures (Documentation/hwmon/sysfs-interface.rst). */
export async function readCelsius(sys: string): Promise<number | undefined> {
  const folder = `${sys}/class/hwmon`;
  const inputs: string[] = [];
  for (const chip of await namesIn(folder)) {
    const names = await namesIn(folder, chip);
    inputs.push(
      ...names.filter((name) => /^temp\d+_input$/.test(name)).map((name) => `${chip}/${name}`),
    );
  }
  const texts = await Promise.all(
    inputs.slice(0, sensorsMax).map((each) => readText(folder, each)),
  );
  // Thousandths of a degree. The value of a broken sensor is no temperature.
  const celsius = texts
    .filter((text) => /^-?\d{1,6}$/.test(text))
    .map((text) => Math.round(Number(text) / 1_000))
    .filter((each) => each > -40 && each < 150);
  return celsius.length === 0 ? undefined : Math.max(...celsius);
}

/** Sums of all memory controllers (Documentation/ABI/testing/sysfs-devices-edac). */
export async function readMemoryErrors(sys: string): Promise<MemoryErrors | undefined> {
  const folder = `${sys}/devices/system/edac/mc`;
  const controllers = (await namesIn(folder)).filter((name) => /^mc\d+$/.test(name));
  if (controllers.length === 0) return undefined;
  let [corrected, uncorrected] = [0, 0];
  for (const name of controllers) {
    corrected += Number(await readText(folder, name, 'ce_count')) || 0;
    uncorrected += Number(await readText(folder, name, 'ue_count')) || 0;
  }
  return { corrected, uncorrected };
}

/** Network cards are interfaces that have a device behind them. */
export async function readNetworkCards(sys: string): Promise<readonly NetworkCard[]> {
  const cards: NetworkCard[] = [];
  for (const name of await namesIn(sys, 'class/net')) {
    const folder = `${sys}/class/net/${name}`;
    if ((await resolvePath(folder, 'device')) === '') continue;
    const sum = async (...counters: readonly string[]): Promise<number> => {
      const read = counters.map((counter) => readNumber(folder, 'statistics', counter));
      return (await Promise.all(read)).reduce((all, each) => all + each, 0);
    };
    // Not every driver counts its kinds of errors among all.
    const kinds = await sum('rx_crc_errors', 'rx_frame_errors', 'rx_length_errors');
    cards.push({
      name,
      linkMbps: await readNumber(folder, 'speed'),
      receivedBytes: await sum('rx_bytes'),
      sentBytes: await sum('tx_bytes'),
      receiveErrors: Math.max(kinds, await sum('rx_errors')),
      sendErrors: Math.max(await sum('tx_carrier_errors'), await sum('tx_errors')),
      linkChanges: await readNumber(folder, 'carrier_changes'),
    });
  }
  return cards;
}
