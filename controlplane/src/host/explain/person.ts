/** Explains waits of a clean that end by a person or by time: holds, pauses, resuming. */
import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { counted, type Run, type RunStep, type store } from '@rackwright/messages';
import { currentStep } from '../pass/pass.ts';
import { pauseEndsMs } from '../pass/pause.ts';
import { engineSteps } from '../pass/step-names.ts';
import { hostId } from './explanation-draft.ts';

/** What a person can do about a run at a hold or a pause. */
export function personAdvice(record: store.HostRecord, reason: 'hold' | 'wait'): string[] {
  const id = hostId(record);
  const run = record.host?.status?.run;
  const step = run === undefined ? undefined : currentStep(run);
  if (reason === 'wait') {
    return ['nothing: it goes on by itself', `or at once: rackwright host skip ${id}`];
  }
  const isControl = step?.name === engineSteps.hold;
  return [
    `${isControl ? 'go on' : 'let it run again'}: rackwright host resume ${id}`,
    `or ${isControl ? 'the same' : 'go on without it'}: rackwright host skip ${id}`,
    `or end the run: rackwright host abort ${id}`,
  ];
}

/** The end of a pause; undefined for any other step. */
export function pauseEnd(step: RunStep | undefined): Timestamp | undefined {
  const endsMs = step === undefined ? undefined : pauseEndsMs(step);
  return endsMs === undefined ? undefined : timestampFromMs(endsMs);
}

/** Why an accepted abort has not ended the run yet; empty when nothing delays it. */
export function abortCauses({ abort }: Run, step: RunStep | undefined) {
  if (abort === undefined || step?.abortable !== false) return [];
  const text = `its abort (${abort.by}) waits for the end of ${step.name}, which cannot be stopped`;
  return [{ text, since: abort.at }];
}

/** What remains of a failed clean: the host in the runner for a while, and a run to resume. */
export function stayOf(record: store.HostRecord): {
  readonly causes: readonly { readonly text: string }[];
  readonly unblock: readonly string[];
} {
  const stay = record.host?.status?.afterFailure;
  if (stay === undefined || record.failedRun === undefined) return { causes: [], unblock: [] };
  const id = hostId(record);
  const until = stay.runnerUntil;
  const text =
    until === undefined
      ? `it is switched on only into the ${stay.bootOnly} or rescue, or with a reason`
      : `it stays in the runner until ${toJson(TimestampSchema, until)}, then it goes off`;
  const again = record.host?.status?.automaticRecleans ?? 0;
  const times = again === 1 ? 'once' : counted(again, 'time');
  return {
    causes: [{ text }, ...(again === 0 ? [] : [{ text: `cleaned again ${times} by itself` }])],
    unblock: [`or go on from the step that failed: rackwright host resume ${id}`],
  };
}
