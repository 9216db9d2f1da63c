/**
 * The output of a step of a workflow's run: the stored one, or the part that has arrived so far.
 *
 * Invariants:
 * 1. Offsets within one response stream only grow; dropped output is a gap.
 * 2. The output of a finished step comes from the store, on every replica. The output of a running
 *    step is in the memory of the replica to which the rack's agent is connected.
 * 3. Following ends with the step, whether or not it had any output.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type CallContext,
  failedPrecondition,
  type HostUid,
  invalidArgument,
  notFound,
  type OperationId,
  type RackId,
  type ReadStepOutputRequest,
  type ReadStepOutputResponseSchema,
  type Run,
  RunPhase,
  type RunStep,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import type { RpcDependencies } from '../../call/ports.ts';
import { quote } from '../../call/violations.ts';
import { isOfTemplate } from '../../host/index.ts';
import { idOf, readRecord } from '../../records/index.ts';
import { existingWorkflow, keptRuns, parseWorkflowRunName, presentRunOf } from '../index.ts';

/** How often the store is read to see whether the step has ended, milliseconds. */
const checkIntervalMs = 1_000;
/** For one response: a longer output is sent in several messages. */
const contentBytesMax = 32 * 1024;

type Response = MessageInitShape<typeof ReadStepOutputResponseSchema>;

/** The dependencies of the reader. */
export type StepOutputDependencies = Pick<
  RpcDependencies,
  'store' | 'clock' | 'stepLogs' | 'replicaId'
>;

/** Handles ReadStepOutput. */
export function createStepOutputReader(deps: StepOutputDependencies) {
  return (
    request: ReadStepOutputRequest,
    context: Pick<CallContext, 'signal'>,
  ): AsyncGenerator<Response, void, undefined> => readStepOutput(deps, request, context);
}

/** One attempt of a step, in its present state. */
interface Attempt {
  readonly hostUid: HostUid;
  readonly rackId: RackId;
  readonly step: RunStep;
  readonly attempt: number;
  readonly operationId: OperationId;
  readonly isOver: boolean;
}

async function* readStepOutput(
  deps: StepOutputDependencies,
  request: ReadStepOutputRequest,
  { signal }: Pick<CallContext, 'signal'>,
): AsyncGenerator<Response, void, undefined> {
  let found = await findAttempt(deps, request);
  // The followed step stays the same, also when the run goes on.
  const same = { ...request, step: found.step.title, attempt: found.attempt };
  const { title: step } = found.step;
  const { attempt, operationId, hostUid } = found;
  let offset = 0n;
  while (!signal.aborted) {
    const stored = await storedOutput(deps, operationId);
    if (stored !== undefined) return yield* sendStored(step, attempt, stored, offset);
    if (found.isOver) {
      const { exit } = found.step;
      const isLatest = found.step.attempt === attempt;
      yield { step, attempt, offset, ...(isLatest && exit !== undefined ? { exit } : {}) };
      return;
    }
    await mustBeHere(deps, found);
    const changed = nextChange(deps, operationId, signal);
    for (const piece of deps.stepLogs.read(hostUid, operationId, offset)) {
      yield* inMessages(step, attempt, piece.offset, piece.content);
      offset = piece.offset + BigInt(piece.content.length);
    }
    if (!request.follow) return changed.cancel();
    await changed.promise;
    found = await findAttempt(deps, same);
  }
}

async function findAttempt(
  deps: StepOutputDependencies,
  request: ReadStepOutputRequest,
): Promise<Attempt> {
  const { name } = request;
  const id = parseWorkflowRunName(name);
  if (id === undefined) {
    const wanted = 'must name a run, as in "hosts/h1/workflows/burn-in/runs/1"';
    throw invalidArgument([{ field: 'name', description: `is ${quote(name)}; it ${wanted}` }]);
  }
  const { record, host } = await existingWorkflow(deps, id);
  const kept = keptRuns(record).find((each) => each.name === name);
  if (kept === undefined) throw notFound(name);
  const { run } = await presentRunOf(deps.store, kept, host);
  if (run === undefined || run.steps.length === 0) {
    throw failedPrecondition('NOT_STARTED', `${name} has not started: none of its steps has run.`);
  }
  const index = indexOf(run, request.step);
  const step = index === undefined ? undefined : run.steps[index];
  if (step === undefined) {
    const titles = run.steps.filter(isOfTemplate).map(({ title }) => title);
    const description = `is ${quote(request.step)}; the run has ${titles.join(', ')}`;
    throw invalidArgument([{ field: 'step', description }]);
  }
  const attempt = request.attempt === 0 ? step.attempt : request.attempt;
  if (attempt < 1 || attempt > step.attempt) {
    throw failedPrecondition(
      'NOT_STARTED',
      `Step ${step.title} has had ${step.attempt} attempts, so there is no output of ${attempt}.`,
    );
  }
  const hostUid = host.host?.uid ?? '';
  return {
    hostUid,
    rackId: idOf(host.host?.spec?.rack),
    step,
    attempt,
    operationId: `${hostUid}/${run.number}/${index}/${attempt}`,
    isOver: run.phase === RunPhase.ENDED || attempt < step.attempt || !isRunning(step),
  };
}

function isRunning({ state }: RunStep): boolean {
  return state === StepState.RUNNING || state === StepState.PENDING;
}

/** The named step, or the present one, or the last that ran. */
function indexOf({ steps, currentStep }: Run, named: string): number | undefined {
  if (named !== '') {
    const found = steps.findIndex((step) => step.title === named);
    return found < 0 ? undefined : found;
  }
  const ran = (step: RunStep | undefined): boolean => {
    return step !== undefined && step.attempt > 0 && isOfTemplate(step);
  };
  if (ran(steps[currentStep])) return currentStep;
  const last = steps.findLastIndex(ran);
  return last < 0 ? undefined : last;
}

async function storedOutput(
  { store }: StepOutputDependencies,
  operationId: OperationId,
): Promise<wire.StepOutputRecord | undefined> {
  const key = storeKey('stepOutputs', ...operationId.split('/'));
  return (await readRecord(store, wire.StepOutputRecordSchema, key))?.record;
}

function* sendStored(
  step: string,
  attempt: number,
  { tail, exit }: wire.StepOutputRecord,
  sent: bigint,
): Generator<Response, void, undefined> {
  const total = exit?.outputBytes ?? BigInt(tail.length);
  const begin = total > BigInt(tail.length) ? total - BigInt(tail.length) : 0n;
  const skip = sent > begin ? Number(sent - begin) : 0;
  const left = tail.subarray(Math.min(skip, tail.length));
  const offset = begin + BigInt(tail.length - left.length);
  yield* inMessages(step, attempt, offset, left);
  yield { step, attempt, offset: total, ...(exit === undefined ? {} : { exit }) };
}

function* inMessages(
  step: string,
  attempt: number,
  offset: bigint,
  content: Uint8Array,
): Generator<Response, void, undefined> {
  for (let at = 0; at < content.length; at += contentBytesMax) {
    const part = content.subarray(at, at + contentBytesMax);
    yield { step, attempt, offset: offset + BigInt(at), content: part };
  }
}

/** Invariant 2. An absent agent is at no replica: this one can wait for it as well as any. */
async function mustBeHere(deps: StepOutputDependencies, { rackId }: Attempt): Promise<void> {
  const kept = await readRecord(deps.store, wire.RackRecordSchema, storeKey('racks', rackId));
  const replica = kept?.record.sessionReplica ?? '';
  if (replica === '' || replica === deps.replicaId) return;
  throw failedPrecondition(
    'AGENT_ELSEWHERE',
    `The agent of racks/${rackId} is connected to replica ${replica}: ask there for what the ` +
      'step writes, or ask again once it has ended.',
  );
}

/** Settles when the operation writes or ends, after a while, or when the caller has gone. */
function nextChange(
  { stepLogs, clock }: StepOutputDependencies,
  operationId: OperationId,
  signal: AbortSignal,
): { readonly promise: Promise<void>; cancel(): void } {
  let settle: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const stopListening = stepLogs.onChange(operationId, () => settle());
  const stopTimer = clock.after(checkIntervalMs, () => settle());
  const onAbort = (): void => settle();
  signal.addEventListener('abort', onAbort, { once: true });
  const cancel = (): void => {
    stopListening();
    stopTimer();
    signal.removeEventListener('abort', onAbort);
  };
  return { promise: promise.finally(cancel), cancel };
}
