/**
 * Reads of BMCs on a person's request: sensors, the event log, firmware and its settings. A read is
 * no operation: nothing is journalled, and each request gets one answer.
 *
 * B1 A read is a preemptible call: every action on the BMC stops it (P2). The read is then answered
 *    `busy`.
 * B2 A BMC that is not the expected one is read no further.
 * B3 The number of reads, their time and the size of an answer are bounded.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BmcBios,
  type BmcBootOrder,
  type BmcDriver,
  type BmcFirmware,
  type BmcLog,
  type BmcResult,
  type BmcSensors,
  type SensorKind as Kind,
  type HealthLevel as Level,
  logEntriesMax,
  transient,
} from '@rackwright/bmc';
import {
  agent,
  type BmcReadingSchema,
  BmcReadKind,
  failureTypeOf,
  HealthLevel,
  SensorKind,
  transientCauseOf,
} from '@rackwright/messages';
import { BoundedQueue, type Clock, type Log } from '@rackwright/platform';
import { boundText, type FinalResult, messageBytesMax } from '@rackwright/results';
import {
  type BmcDrivers,
  expectBmc,
  failure,
  resolveBmc,
  resultOfBmc,
} from './operations/index.ts';
import type { AgentSession, BmcReadReceiver } from './session/index.ts';

export interface BmcReadLimits {
  /** BMCs that are read at once. */
  readonly readsMax: number;
  /** Questions that wait beside them. */
  readonly waitingMax: number;
  /** Longest time of one read. */
  readonly readMs: number;
}

export const defaultBmcReadLimits: BmcReadLimits = {
  readsMax: 4,
  waitingMax: 32,
  readMs: 150_000,
};

export interface BmcReadParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly drivers: BmcDrivers;
  readonly session: () => Pick<AgentSession, 'credential' | 'reportBmcRead'>;
  readonly limits?: BmcReadLimits;
}

type BmcReadingInit = MessageInitShape<typeof BmcReadingSchema>;
type Answer = { readonly kind: 'ok'; readonly value: BmcReadingInit } | FinalResult;

export class AgentBmcReads implements BmcReadReceiver {
  readonly kinds = [
    BmcReadKind.SENSORS,
    BmcReadKind.LOG,
    BmcReadKind.FIRMWARE,
    BmcReadKind.BIOS,
    BmcReadKind.BOOT_ORDER,
  ] as const;
  readonly #parts: BmcReadParts;
  readonly #limits: BmcReadLimits;
  readonly #questions: BoundedQueue<agent.ReadBmc>;

  constructor(parts: BmcReadParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? defaultBmcReadLimits;
    const { readsMax: atOnceMax, waitingMax } = this.#limits;
    const answer = (question: agent.ReadBmc): Promise<void> => this.#answer(question);
    this.#questions = new BoundedQueue({ atOnceMax, waitingMax }, answer);
  }

  read(question: agent.ReadBmc): void {
    if (this.#questions.add(question)) return;
    const text = `${this.#limits.waitingMax} reads of BMCs wait at this agent already`;
    this.#tell(question, resultOfBmc(transient('queueFull', text)));
  }

  async #answer(question: agent.ReadBmc): Promise<void> {
    const { clock, log } = this.#parts;
    const abort = new AbortController();
    let isPreempted = false;
    const preempt = (): void => {
      isPreempted = true;
      abort.abort();
    };
    const cancel = clock.after(this.#limits.readMs, () => abort.abort());
    let answer: Answer;
    try {
      answer = await this.#read(question, preempt, abort.signal);
    } catch (error) {
      log.error({ hostUid: question.hostUid }, 'a read of a BMC threw', error);
      const text = 'the agent could not read the BMC: see its log';
      answer = resultOfBmc(transient('trouble', text));
    } finally {
      cancel();
    }
    if (answer.kind === 'failed' && answer.type === 'cancelled') {
      const tooLate = `the BMC was not read in ${this.#limits.readMs / 1_000} s`;
      answer = resultOfBmc(
        isPreempted
          ? transient('busy', 'an operation has come to work on this BMC')
          : transient('unreachable', tooLate),
      );
    }
    this.#tell(question, answer);
  }

  async #read(question: agent.ReadBmc, preempt: () => void, signal: AbortSignal): Promise<Answer> {
    const { bmc, expectedIdentity } = question;
    const reachable = resolveBmc(this.#parts.session(), bmc, expectedIdentity);
    if (reachable.kind !== 'ok') return reachable;
    const driver = this.#parts.drivers.driver(reachable.endpoint, { preempt });
    // (B2)
    const expected = await expectBmc(driver, reachable, { signal });
    if (expected.kind !== 'expected') return expected;
    return readOf(driver, question, signal);
  }

  #tell({ id, hostUid }: agent.ReadBmc, answer: Answer): void {
    const read = create(agent.BmcReadSchema, { id, hostUid, ...outcomeOf(answer) });
    this.#parts.session().reportBmcRead(read);
  }
}

function outcomeOf(answer: Answer): MessageInitShape<typeof agent.BmcReadSchema> {
  switch (answer.kind) {
    case 'ok':
      return { reading: answer.value };
    case 'failed':
      return { failure: failureTypeOf(answer.type), message: bounded(answer) };
    case 'transientError':
      return { transient: transientCauseOf(answer.cause), message: bounded(answer) };
    case 'retryAfter':
      return { transient: transientCauseOf('busy'), message: bounded(answer) };
    case 'complete':
      return {};
  }
}

function bounded({ message, detail }: { message: string; detail?: string }): string {
  const text = detail === undefined || detail === '' ? '' : ` (${detail})`;
  return boundText(`${message}${text}`, messageBytesMax);
}

async function readOf(
  driver: BmcDriver,
  { kind, maxEntries }: agent.ReadBmc,
  signal: AbortSignal,
): Promise<Answer> {
  switch (kind) {
    case BmcReadKind.SENSORS:
      return as(await driver.readSensors?.(signal), sensorsToWire);
    case BmcReadKind.LOG: {
      const entriesMax = Math.min(maxEntries, logEntriesMax);
      return as(await driver.readLog?.(entriesMax, signal), logToWire);
    }
    case BmcReadKind.FIRMWARE:
      return as(await driver.readFirmware?.(signal), firmwareToWire);
    case BmcReadKind.BIOS:
      return as(await driver.readBios?.(signal), biosToWire);
    case BmcReadKind.BOOT_ORDER:
      return as(await driver.readBootOrder?.(signal), bootOrderToWire);
    case BmcReadKind.UNSPECIFIED:
      break;
  }
  return failure('unsupported', 'this agent does not know what is to be read');
}

/** Undefined: the protocol has nothing of the kind. */
function as<T>(result: BmcResult<T> | undefined, toWire: (value: T) => BmcReadingInit): Answer {
  if (result === undefined)
    return failure('unsupported', 'the protocol of this BMC has no such list');
  return result.kind === 'ok' ? { kind: 'ok', value: toWire(result.value) } : resultOfBmc(result);
}

const levels: Readonly<Record<Level, HealthLevel>> = {
  ok: HealthLevel.OK,
  warning: HealthLevel.WARNING,
  critical: HealthLevel.CRITICAL,
};

export function levelToWire(level: Level | undefined): HealthLevel {
  return level === undefined ? HealthLevel.UNSPECIFIED : levels[level];
}

const kinds: Readonly<Record<Kind, SensorKind>> = {
  temperature: SensorKind.TEMPERATURE,
  fan: SensorKind.FAN,
  voltage: SensorKind.VOLTAGE,
  current: SensorKind.CURRENT,
  power: SensorKind.POWER,
  other: SensorKind.UNSPECIFIED,
};

function sensorsToWire({ health, sensors, complete }: BmcSensors): BmcReadingInit {
  return {
    complete,
    ...(health === undefined
      ? {}
      : { health: { level: levelToWire(health.level), message: health.text } }),
    sensors: sensors.map(({ name, kind, reading, unit, health }) => ({
      ...{ name, kind: kinds[kind], unit, health: levelToWire(health) },
      ...(reading === undefined ? {} : { reading }),
    })),
  };
}

function logToWire({ entries, complete }: BmcLog): BmcReadingInit {
  const logEntries = entries.map(({ id, time, severity, message }) => {
    return { id, time, severity: levelToWire(severity), message };
  });
  return { complete, logEntries };
}

function firmwareToWire({ components, complete }: BmcFirmware): BmcReadingInit {
  return { complete, firmware: components.map((component) => ({ ...component })) };
}

function biosToWire({ settings, complete }: BmcBios): BmcReadingInit {
  return { complete, biosSettings: settings.map((setting) => ({ ...setting })) };
}

function bootOrderToWire({ options, complete }: BmcBootOrder): BmcReadingInit {
  return { complete, bootOptions: options.map((option) => ({ ...option })) };
}
