/** The form of a runner's step: a description, and a function from an order to its end. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HostName, OperationId } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import type * as runner from '@rackwright/messages/runner';
import type { Clock, CrashPoint, Log } from '@rackwright/platform';
import type { Complete, FailedAttempt, RetryAfter } from '@rackwright/results';
import type { BlockDevices } from '../machine/block-devices.ts';
import type { Machine } from '../machine/machine.ts';
import type { ExchangeOutcome, ExchangePayload } from '../session/exchange.ts';
import type { BeginOutcome } from '../session/permission.ts';

/** The stage of one device, as in an interrupted step's `last_progress`. */
export type DeviceStage = 'begun' | 'challenged' | 'erased' | 'verified';

export interface StepContext {
  readonly operationId: OperationId;
  readonly order: agent.RunStep;
  readonly devices: BlockDevices;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** Aborted when the step is to stop where it can. */
  readonly signal: AbortSignal;
  /** Shown to people; the latest wins. Percent 0–100. */
  reportProgress(percent: number, text: string): void;
  /** A piece of the program's output: shown to people as it arrives, never waited for. */
  reportOutput(piece: Uint8Array): void;
  /** Resolves when the stage is recorded where a restarted runner finds it. */
  recordStage(deviceIdentity: string, stage: DeviceStage): Promise<void>;
  /**
   * For a step that took time after its order: called right before any destructive work begins
   * (R11). Settles when it may begin, or never will.
   */
  requestBegin(): Promise<BeginOutcome>;
  /** True only in the lab, to show that without the verdict a lying disk passes. */
  readonly verdictSwitchedOff: boolean;
  readonly runnerVersion: string;
  /** The host's name, as the agent knows it. */
  readonly hostName: HostName;
  /** Variables for the step's program that are secrets; they are saved and shown nowhere. */
  readonly secretEnvironment: Readonly<Record<string, string>>;
  /** "host:port" where the agent serves images; empty: it serves none. */
  readonly imageEndpoint: string;
  /** The image of the host, as the agent serves it. */
  readonly imageFile?: runner.ImageFile | undefined;
  /** Bytes to the agent and back; never rejects. Absent: there is no agent for that. */
  readonly exchange?: (wanted: ExchangePayload) => Promise<ExchangeOutcome>;
  /** The traceparent (W3C Trace Context) for the step's own calls; unset: there is none. */
  readonly traceParent?: string;
  /** The URL for the image's phone-home; empty: none. It is a credential, and is shown nowhere. */
  readonly phoneHomeUrl?: string;
}

export interface StepResult {
  readonly result: Complete | FailedAttempt | RetryAfter;
  /** The acts on devices; the agent signs them. Host and session are added by the agent. */
  readonly evidence?: MessageInitShape<typeof agent.StepEvidenceSchema>;
}

export interface Step {
  readonly description: MessageInitShape<typeof agent.StepDescriptionSchema>;
  /**
   * Only a step that has this may hand off: why it cannot run, found out before it is acknowledged,
   * without doing anything; undefined: it can.
   */
  check?(context: StepContext): Promise<StepResult | undefined>;
  run(context: StepContext): Promise<StepResult>;
}
