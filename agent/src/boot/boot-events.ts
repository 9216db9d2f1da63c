/**
 * What the boot path sees of boots into the runner, step by step, for reports to people. Other
 * boots are not reported.
 *
 * G1 An event is reported at once and decides nothing. An observer that throws costs a log line.
 */

import type { BootClientKind, Mac } from '@rackwright/dhcp';
import type { HostUid, OperationId } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { BootMemory } from './memory.ts';
import { type BootDecision, bootDecision } from './permission.ts';

/** A stage of a boot that the boot path serves. */
export type BootStage =
  | 'discover'
  | 'offer'
  | 'request'
  | 'ack'
  | 'loader'
  | 'script'
  | 'kernel'
  | 'initrd';

/** The program in the machine that asks. */
export type BootProgram = 'firmware' | 'loader' | 'system';

export interface BootEvent {
  readonly hostUid: HostUid;
  /** The operation of the boot. */
  readonly operationId: OperationId;
  /** Lower case, with colons. */
  readonly mac: Mac;
  readonly stage: BootStage;
  readonly program: BootProgram;
  /** How a file was sent. */
  readonly transport?: 'tftp' | 'http';
  /** came: a request or a DHCP message arrived. sent: a file was sent whole. failed: it was not. */
  readonly kind: 'came' | 'sent' | 'failed';
  /** The bytes of a sent file. */
  readonly bytes: number;
  /** Why it was not answered or sent; empty: it was, or goes on. */
  readonly problem: string;
  /** DHCP: whether this interface gives addresses. */
  readonly givesAddresses?: boolean;
}

export interface BootEventsParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: () => BootMemory;
  /** Called synchronously; must be quick. */
  readonly onEvent: (event: BootEvent) => void;
  /** Names of the runner's files; all others are loaders. */
  readonly kernel: string;
  readonly initrd: string;
}

/** A file on its way. */
export interface BootFileTransfer {
  sent(bytes: number): void;
  failed(problem: string): void;
}

/** One DHCP request and its outcome. */
export interface DhcpExchange {
  readonly mac: Mac;
  readonly messageType: 'discover' | 'request';
  /** Absent: it is no boot firmware. */
  readonly client: BootClientKind | undefined;
  readonly givesAddresses: boolean;
  /** Whether it got the requested address. */
  readonly isGranted: boolean;
  /** Why not. */
  readonly problem: string;
}

const programs: Readonly<Record<BootClientKind, BootProgram>> = {
  pxe: 'firmware',
  httpBoot: 'firmware',
  ipxe: 'loader',
  uBoot: 'firmware',
  raspberryPi: 'firmware',
};

const programsOfFiles = {
  loader: 'firmware',
  script: 'loader',
  kernel: 'loader',
  initrd: 'loader',
} as const satisfies Partial<Record<BootStage, BootProgram>>;

type BootFile = keyof typeof programsOfFiles;

/** Stands for the script, which is no file. */
export const scriptName = Symbol('script');

export class BootEvents {
  readonly #parts: BootEventsParts;

  constructor(parts: BootEventsParts) {
    this.#parts = parts;
  }

  /** Records a DHCP request, with the decision on its MAC. */
  dhcp(decision: BootDecision, exchange: DhcpExchange): void {
    if (decision.kind !== 'runner') return;
    const { mac, client, givesAddresses, isGranted, problem } = exchange;
    const program = client === undefined ? 'system' : programs[client];
    const { hostUid, operationId } = decision;
    const whose = { hostUid, operationId, mac, program, givesAddresses };
    const stage = exchange.messageType;
    const why = isGranted ? '' : problem;
    this.#tell({ ...whose, stage, kind: 'came', bytes: 0, problem: why });
    if (!isGranted) return;
    const answer = stage === 'discover' ? 'offer' : 'ack';
    this.#tell({ ...whose, stage: answer, kind: 'came', bytes: 0, problem: '' });
  }

  /** A file was requested; undefined: it does not belong to a boot into the runner. */
  file(
    mac: Mac,
    name: string | typeof scriptName,
    transport: 'tftp' | 'http',
  ): BootFileTransfer | undefined {
    const { clock, memory } = this.#parts;
    const decision = bootDecision(memory(), mac, clock.nowMs());
    if (decision.kind !== 'runner') return undefined;
    const { hostUid, operationId } = decision;
    const stage = this.#stageOf(name);
    const program = programsOfFiles[stage];
    const file = { hostUid, operationId, mac, stage, program, transport };
    this.#tell({ ...file, kind: 'came', bytes: 0, problem: '' });
    return {
      sent: (bytes) => this.#tell({ ...file, kind: 'sent', bytes, problem: '' }),
      failed: (problem) => this.#tell({ ...file, kind: 'failed', bytes: 0, problem }),
    };
  }

  #stageOf(name: string | typeof scriptName): BootFile {
    const { kernel, initrd } = this.#parts;
    if (name === scriptName) return 'script';
    return name === kernel ? 'kernel' : name === initrd ? 'initrd' : 'loader';
  }

  #tell(event: BootEvent): void {
    try {
      this.#parts.onEvent(event);
    } catch (error) {
      this.#parts.log.error({ mac: event.mac }, 'observer of boots failed', error);
    }
  }
}
