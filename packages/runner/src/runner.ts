/**
 * The runner's loop: keeps a session with the agent, carries out the effects that the session
 * machine decides, runs steps. A thin shell; `session/protocol.ts` decides what it may do.
 *
 * Invariants:
 * 1. Effects are carried out one after another, in the order of the events they follow from.
 * 2. A record that cannot be saved ends the runner: it is restarted and reports `interrupted`.
 * 3. A lost connection never touches a step that is at work.
 */
import { create } from '@bufbuild/protobuf';
import { type BootId, type OperationId } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import {
  type Clock,
  type CrashPoint,
  type Disk,
  errorText,
  type Log,
  markHandled,
  pause,
  type Random,
  whenSettled,
} from '@rackwright/platform';
import { type FailedAttempt, fullJitterDelayMs } from '@rackwright/results';
import type { BlockDevices } from './machine/block-devices.ts';
import { InventoryTooLarge, takeInventory } from './machine/inventory.ts';
import type { Machine } from './machine/machine.ts';
import { LiveOutput } from './program/live-output.ts';
import type { AgentConnection, AgentDialer } from './session/dialer.ts';
import { type ExchangeOutcome, type ExchangePayload, exchangeBytes } from './session/exchange.ts';
import { loadRunnerKey, type RunnerKey } from './session/key.ts';
import { type BeginAnswer, type BeginOutcome, BeginRequests } from './session/permission.ts';
import {
  inspected,
  type OrderedImage,
  RunnerProtocol,
  type SessionEffect,
  type SessionEvent,
} from './session/protocol.ts';
import { decodeRecord, encodeRecord } from './session/record.ts';
import { formatProgress } from './steps/progress-text.ts';
import type { DeviceStage, Step, StepContext, StepResult } from './steps/step.ts';

export interface RunnerParts {
  readonly dialer: AgentDialer;
  readonly devices: BlockDevices;
  readonly machine: Machine;
  readonly steps: readonly Step[];
  readonly clock: Clock;
  readonly random: Random;
  readonly disk: Disk;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** In a ramdisk's /run; holds key and record of this boot. */
  readonly stateFolder: string;
  readonly bootToken: string;
  readonly runnerVersion: string;
  readonly verdictSwitchedOff: boolean;
}

const reconnectFirstMs = 500;
const reconnectMsMax = 5_000;
/** Even a lucky draw of the jitter waits this long. */
const reconnectMsMin = 100;
/** Messages waiting for the agent above which no output is sent. */
const liveWaitingMax = 16;
const stateFolderMode = 0o700;
const ownerOnly = 0o600;

/** Runs until `signal` aborts; rejects when the runner cannot go on and must be restarted. */
export async function runRunner(parts: RunnerParts, signal: AbortSignal): Promise<void> {
  await parts.disk.makeFolder(parts.stateFolder, stateFolderMode);
  const bootId = await parts.machine.bootId();
  const recordPath = `${parts.stateFolder}/record.json`;
  const record = decodeRecord(await parts.disk.read(recordPath), bootId);
  const interrupted = record.outstanding;
  const names = parts.steps.map((step) => step.description.name ?? '');
  const session = new RunnerProtocol(record, names, parts.clock.nowMs());
  const key = await loadRunnerKey(parts.disk, `${parts.stateFolder}/key.json`, bootId);
  const loop = new RunnerLoop(parts, session, key, bootId, interrupted, recordPath);
  await loop.run(signal);
}

/** The parts of a step's context. */
interface ContextEffect {
  readonly operationId: OperationId;
  readonly order: agent.RunStep;
  readonly secretEnvironment?: Readonly<Record<string, string>>;
  readonly deploy?: OrderedImage;
  readonly traceParent?: string;
}

class RunnerLoop {
  readonly #parts: RunnerParts;
  readonly #session: RunnerProtocol;
  readonly #key: RunnerKey;
  readonly #bootId: BootId;
  readonly #interrupted: { operationId: OperationId; progress: string } | undefined;
  readonly #recordPath: string;
  readonly #failed = new AbortController();
  readonly #steps = new Map<OperationId, AbortController>();
  #connection: AgentConnection | undefined;
  #hostName = '';
  #imageEndpoint = '';
  readonly #permissions: BeginRequests;
  #last: Promise<void> = Promise.resolve();

  constructor(
    parts: RunnerParts,
    session: RunnerProtocol,
    key: RunnerKey,
    bootId: BootId,
    interrupted: { operationId: OperationId; progress: string } | undefined,
    recordPath: string,
  ) {
    this.#parts = parts;
    this.#session = session;
    this.#key = key;
    this.#bootId = bootId;
    this.#interrupted = interrupted;
    this.#recordPath = recordPath;
    this.#permissions = new BeginRequests(parts.clock, (operationId, sequence) =>
      this.#askToBegin(operationId, sequence),
    );
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#carryOut([{ kind: 'save', record: this.#session.record }]);
    const stop = (): void => this.#connection?.close();
    signal.addEventListener('abort', stop);
    this.#failed.signal.addEventListener('abort', stop);
    let attempt = 0;
    while (!signal.aborted && !this.#failed.signal.aborted) {
      attempt = (await this.#converse()) ? 1 : attempt + 1;
      if (!signal.aborted && !this.#failed.signal.aborted) await this.#pause(attempt);
    }
    if (this.#failed.signal.aborted) throw this.#failed.signal.reason;
  }

  /** One connection from dial to end. True when the agent had accepted us. */
  async #converse(): Promise<boolean> {
    const { dialer, log } = this.#parts;
    let accepted = false;
    try {
      this.#connection = await dialer.dial();
      for await (const { message } of this.#connection.messages) {
        if (message.case === 'accepted') accepted = true;
        await this.#take(message);
      }
      log.info({}, 'the agent ended the stream');
    } catch (error) {
      log.warn({}, 'no agent', error);
    } finally {
      this.#connection?.close();
      this.#connection = undefined;
      await this.#dispatch({ kind: 'disconnected' });
    }
    return accepted;
  }

  async #take(message: runner.SessionResponse['message']): Promise<void> {
    const { log } = this.#parts;
    switch (message.case) {
      case 'challenge':
        this.#connection?.send({ case: 'hello', value: await this.#hello(message.value.nonce) });
        return;
      case 'accepted': {
        const { runnerSession, hostName, imageEndpoint, answersBegin } = message.value;
        this.#hostName = hostName;
        this.#permissions.accepted(answersBegin);
        this.#imageEndpoint = imageEndpoint;
        log.info({ host: hostName, session: runnerSession }, 'accepted by the agent');
        await this.#dispatch({ kind: 'accepted', runnerSession });
        return;
      }
      case 'refused':
        log.error({ reason: message.value.message }, 'refused by the agent');
        return;
      case 'order':
        log.info({ operation: message.value.operationId, what: message.value.kind.case }, 'order');
        await this.#dispatch({ kind: 'order', order: message.value });
        return;
      case 'reportReceived':
        await this.#dispatch({
          kind: 'reportReceived',
          operationId: message.value.operationId,
          handOff: message.value.handOff,
        });
        return;
      case 'beginAnswer': {
        const { operationId, sequence } = message.value;
        this.#permissions.answered(operationId, sequence, permissionOf(message.value));
        return;
      }
      case undefined:
        // A message of a newer agent: nothing that we could act on.
        log.warn({}, 'a message of an unknown kind');
        return;
    }
  }

  async #hello(nonce: Uint8Array): Promise<runner.Hello> {
    const { machine, bootToken, runnerVersion, steps } = this.#parts;
    return create(runner.HelloSchema, {
      bootToken,
      publicKey: this.#key.publicKeyDer,
      signature: this.#key.proveHello(nonce, bootToken),
      bootId: this.#bootId,
      uptimeMs: BigInt(Math.floor(await machine.uptimeMs())),
      runnerVersion,
      steps: steps.map((step) => step.description),
      system: await machine.identity(),
      interruptedOperationId: this.#interrupted?.operationId ?? '',
      interruptedProgress: this.#interrupted?.progress ?? '',
      unreceivedOperationIds: this.#session.unreceivedIds,
      bmcAddress: await machine.bmcAddress(),
      architecture: machine.architecture ?? '',
    });
  }

  /** Not waited for. */
  #note(event: SessionEvent): void {
    // A failure to save is met by the loop (invariant 2).
    markHandled(this.#dispatch(event));
  }

  /** Resolves when all that follows from the event has been carried out. */
  #dispatch(event: SessionEvent): Promise<void> {
    const effects = this.#session.handle(event, this.#parts.clock.nowMs());
    return this.#carryOut(effects);
  }

  #carryOut(effects: readonly SessionEffect[]): Promise<void> {
    const mine = this.#last.then(async () => {
      for (const effect of effects) await this.#perform(effect);
    });
    // Invariant 2: a failure stays, and the runner ends.
    this.#last = mine.catch((error: unknown) => this.#failed.abort(error));
    return mine;
  }

  async #perform(effect: SessionEffect): Promise<void> {
    switch (effect.kind) {
      case 'send':
        this.#connection?.send(effect.message);
        return;
      case 'save': {
        const bytes = encodeRecord(effect.record, this.#bootId);
        await this.#parts.disk.writeAtomic(this.#recordPath, bytes, ownerOnly);
        return;
      }
      case 'crashPoint':
        this.#parts.crashPoint(effect.name);
        return;
      case 'runStep':
        void this.#runStep(effect);
        return;
      case 'inspect':
        void this.#inspect(effect);
        return;
      case 'checkHandOff':
        void this.#checkHandOff(effect);
        return;
      case 'handOff':
        void this.#handOff(effect);
        return;
      case 'stop':
        this.#steps.get(effect.operationId)?.abort();
        return;
    }
  }

  async #inspect(effect: SessionEffect & { readonly kind: 'inspect' }): Promise<void> {
    const { machine, devices, clock, log } = this.#parts;
    const { operationId } = effect;
    const end = await takeInventory(machine, devices, clock.nowMs(), { ...effect, log }).then(
      (inventory) => inspected(inventory),
      (error: unknown) =>
        error instanceof InventoryTooLarge
          ? { kind: 'failed' as const, type: 'unsupported' as const, message: error.message }
          : this.#internal(operationId, error).result,
    );
    await this.#ended(operationId, { result: end });
  }

  async #runStep(effect: SessionEffect & { readonly kind: 'runStep' }): Promise<void> {
    const { operationId } = effect;
    const live = new LiveOutput(this.#parts.clock, (offset, content) =>
      this.#tellOutput(operationId, offset, content),
    );
    const step = this.#stepOf(effect.order);
    const end = await step
      .run(this.#context(effect, (piece) => live.push(piece)))
      .catch((error: unknown) => this.#internal(operationId, error));
    live.end();
    this.#steps.delete(operationId);
    await this.#ended(operationId, end);
  }

  /** Nothing is done yet: the end is reported, and acknowledged, before the step acts. */
  async #checkHandOff(effect: SessionEffect & { readonly kind: 'checkHandOff' }): Promise<void> {
    const { operationId, order } = effect;
    const step = this.#stepOf(order);
    const refused =
      step.check === undefined
        ? { result: cannotHandOff(order.step) }
        : await step
            .check(this.#context(effect, () => {}))
            .catch((error: unknown) => this.#internal(operationId, error));
    const aborted = this.#steps.get(operationId)?.signal.aborted === true;
    this.#steps.delete(operationId);
    if (refused !== undefined) return this.#ended(operationId, refused);
    if (aborted) return this.#ended(operationId, { result: notHandedOff });
    await this.#ended(operationId, { result: { kind: 'complete' }, handOff: order });
  }

  /** Its end is not reported: mostly nothing is left that could report it. */
  async #handOff(effect: SessionEffect & { readonly kind: 'handOff' }): Promise<void> {
    const { operationId, order } = effect;
    const { log } = this.#parts;
    log.info({ operation: operationId, step: order.step }, 'hands the host off');
    const { result } = await this.#stepOf(order)
      .run(this.#context(effect, () => {}))
      .catch((error: unknown) => this.#internal(operationId, error));
    const message = result.kind === 'failed' ? result.message : undefined;
    log.warn({ operation: operationId, result: result.kind, message }, 'still here');
  }

  #stepOf({ step: name }: agent.RunStep): Step {
    const step = this.#parts.steps.find(({ description }) => description.name === name);
    if (step === undefined) throw new Error(`the session began the unknown step ${name}`);
    return step;
  }

  #context(
    { operationId, order, secretEnvironment = {}, deploy, traceParent }: ContextEffect,
    output: (piece: Uint8Array) => void,
  ): StepContext {
    const { devices, machine, clock, crashPoint, verdictSwitchedOff, runnerVersion } = this.#parts;
    const controller = new AbortController();
    this.#steps.set(operationId, controller);
    const stages = new Map<string, DeviceStage>();
    return {
      operationId,
      order,
      devices,
      machine,
      clock,
      log: this.#parts.log.child({ operation: operationId, trace: traceParent?.split('-')[1] }),
      crashPoint,
      signal: controller.signal,
      reportProgress: (percent: number, text: string) => {
        this.#note({ kind: 'progressed', operationId, percent, text });
      },
      recordStage: (identity: string, stage: DeviceStage) => {
        stages.set(identity, stage);
        const progress = formatProgress(stages, order.challengeSeed);
        return this.#dispatch({ kind: 'stageReached', operationId, progress });
      },
      reportOutput: output,
      requestBegin: () => this.#mayBegin(operationId, controller.signal),
      verdictSwitchedOff,
      runnerVersion,
      hostName: this.#hostName,
      secretEnvironment,
      imageEndpoint: this.#imageEndpoint,
      exchange: (wanted) => this.#exchange(operationId, controller.signal, wanted),
      ...deploy,
      ...(traceParent === undefined ? {} : { traceParent }),
    };
  }

  async #mayBegin(operationId: OperationId, signal: AbortSignal): Promise<BeginOutcome> {
    const may = await this.#permissions.ask(operationId, signal, (reason) => {
      const report = { kind: 'progressed', operationId, percent: 0, text: reason } as const;
      this.#note(report);
    });
    const begun = may.kind === 'granted' && !signal.aborted;
    if (begun) this.#note({ kind: 'begun', operationId });
    return may;
  }

  /** Not before this agent has accepted us: the burn-in is ordered there. */
  async #exchange(
    operationId: OperationId,
    signal: AbortSignal,
    wanted: ExchangePayload,
  ): Promise<ExchangeOutcome> {
    const { clock, bootToken } = this.#parts;
    const open = this.#connection?.exchange;
    if (open === undefined || !this.#session.isAccepted) {
      return { kind: 'broken', reason: 'no agent is connected' };
    }
    return await exchangeBytes({ open, clock, bootToken, operationId, signal }, wanted);
  }

  #askToBegin(operationId: OperationId, sequence: bigint): void {
    if (!this.#session.isAccepted) return;
    const value = create(runner.AskToBeginSchema, { operationId, sequence });
    this.#connection?.send({ case: 'askToBegin', value });
  }

  /** False when no agent is connected, or it is behind. */
  #tellOutput(operationId: OperationId, offset: bigint, content: Uint8Array): boolean {
    const connection = this.#connection;
    if (connection === undefined || !this.#session.isAccepted) return false;
    if ((connection.waiting?.() ?? 0) > liveWaitingMax) return false;
    const value = create(runner.StepLogSchema, { operationId, offset, content });
    connection.send({ case: 'stepLog', value });
    return true;
  }

  async #ended(
    operationId: OperationId,
    end: StepResult & { readonly handOff?: agent.RunStep },
  ): Promise<void> {
    const { result } = end;
    const message = result.kind === 'failed' ? result.message : undefined;
    this.#parts.log.info({ operation: operationId, result: result.kind, message }, 'ended');
    // A failure to save is met by the loop (invariant 2).
    await whenSettled(this.#dispatch({ kind: 'ended', operationId, ...end }));
  }

  #internal(operationId: OperationId, error: unknown): { result: StepResult['result'] } {
    const message = errorText(error);
    this.#parts.log.error({ operation: operationId }, 'the runner failed', error);
    return { result: { kind: 'failed', type: 'internal', message } };
  }

  #pause(attempt: number): Promise<void> {
    const delayMs = fullJitterDelayMs({
      attempt,
      firstMs: reconnectFirstMs,
      delayMsMax: reconnectMsMax,
      fraction: this.#parts.random.fraction(),
    });
    return pause(this.#parts.clock, Math.max(delayMs, reconnectMsMin));
  }
}

/** An unknown answer permits nothing (R8). */
function permissionOf({ answer, grantedForMs }: runner.BeginAnswer): BeginAnswer {
  if (answer.case === 'over') return { kind: 'over', reason: answer.value };
  if (answer.case === 'granted' && answer.value) {
    return grantedForMs === undefined
      ? { kind: 'granted' }
      : { kind: 'granted', forMs: Number(grantedForMs) };
  }
  const reason = answer.case === 'wait' ? answer.value : 'the agent does not let it begin';
  return { kind: 'wait', reason };
}

function cannotHandOff(step: string): FailedAttempt {
  const message = `the step "${step}" cannot take the runner away: hand off with a script`;
  return { kind: 'failed', type: 'unsupported', message };
}

const notHandedOff: FailedAttempt = {
  kind: 'failed',
  type: 'cancelled',
  message: 'It was cancelled before it could take the runner away.',
};
