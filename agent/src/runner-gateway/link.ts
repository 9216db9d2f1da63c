/** The interfaces between operations, the dispatcher and the streams of runners. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { agent, HostUid, OperationId, RunnerSessionId, runner } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { HandOff, OperationContext } from '../session/index.ts';

export type ToRunner = NonNullable<
  MessageInitShape<typeof runner.SessionResponseSchema>['message']
>;

/** Whether destructive work may begin now; why not yet, or why never. */
export type BeginDecision =
  /** For so long from its asking, milliseconds; unset where no lease limits it. */
  | { readonly case: 'granted'; readonly value: true; readonly forMs?: number }
  | { readonly case: 'wait' | 'over'; readonly value: string };

/** A live stream to a runner that has proved itself. */
export interface RunnerLink {
  readonly bootOperationId: OperationId;
  readonly hostUid: HostUid;
  readonly runnerSession: RunnerSessionId;
  /** "interface.step" of every step that it offers. */
  readonly steps: readonly string[];
  /** "amd64", "arm64"; empty: unreported. */
  readonly architecture: string;
  /**
   * The address of its fetches of images and of its host's phone-home, "host:port"; empty: none.
   */
  readonly imageEndpoint: string;
  /** Booted for a person, who alone touches the host: no step is ordered here. */
  readonly rescue: boolean;
  /** Operations whose final report the runner will send again by itself. */
  readonly unreceived: Set<OperationId>;
  send(message: ToRunner): void;
  /** Ends the stream. */
  close(): void;
}

/** Work for the runner of one boot. */
export interface RunnerOrder {
  readonly operation: agent.Operation;
  /** The SetPower operation whose grant the runner used. */
  readonly bootOperationId: OperationId;
  readonly order: Extract<agent.Operation['kind'], { case: 'inspect' | 'runStep' }>;
  /** Secrets for the step's program: in memory only, gone with this agent. */
  readonly secretEnvironment?: Readonly<Record<string, string>>;
  /** The image of a step that puts one onto a disk; undefined: it is not there yet, nor ordered. */
  readonly image?: () => ImageOfOrder | undefined;
}

export interface ImageOfOrder {
  readonly imageFile: MessageInitShape<typeof runner.ImageFileSchema>;
  /** The path of the URL that the host calls when it runs; empty: none. */
  readonly phoneHomePath: string;
}

/** The operations' calls of the runners. */
export interface RunnerOrders {
  /** Steps of the runner of this boot; undefined while none is connected. */
  stepsOf(bootOperationId: OperationId): readonly string[] | undefined;
  /** "amd64", "arm64"; undefined while no runner is connected, or when it does not report it. */
  architectureOf(bootOperationId: OperationId): string | undefined;
  /** Orders the work and waits for its end. Rejects with AttemptEnd when it may not begin. */
  run(order: RunnerOrder, context: OperationContext): Promise<FinalResult>;
  /**
   * Resumes work that was ordered before a restart of ours; waits a bounded time for the runner.
   */
  resume(order: RunnerOrder, context: OperationContext): Promise<FinalResult | 'interrupted'>;
  /** Informs the runner that the final report is durable. */
  noteReportDurable(operationId: OperationId): void;
  /** The control plane has answered the end of a hand-off; `acts`: the runner may act now. */
  handOffAnswered(handOff: HandOff, acts: boolean): void;
  /** The host's hand-off that may act and whose runner does not know it yet; for a bounded time. */
  handOffUnderWay(hostUid: HostUid): string | undefined;
  /** Cuts the host's runners off. */
  forgetHost(hostUid: HostUid): void;
}
