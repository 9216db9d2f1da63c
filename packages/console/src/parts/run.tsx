/** A run with its steps. */

import {
  enumWord,
  type Run,
  RunOutcomeSchema,
  RunPhase,
  type RunStep,
  SkipCause,
  StepStateSchema,
  stepText,
} from '@rackwright/messages';
import { useNow } from '../browser/hooks.ts';
import { msOf, span } from '../logic/format.ts';
import { outcomeTone, runWord, stepTone } from '../logic/host-tones.ts';
import { presentStep, progressOf } from '../logic/progress.ts';
import { Badge, Mark, Meter, Time } from './basics.tsx';

interface RunProps {
  readonly run: Run;
  /** Of the step under way, and what it says of itself. */
  readonly percent?: number;
  readonly text?: string;
}

export function RunView({ run, percent = 0, text = '' }: RunProps) {
  const progress = progressOf(run, percent);
  const isOver = run.phase === RunPhase.ENDED;
  const step = presentStep(run);
  return (
    <div class="run">
      <div class="run-head">
        <strong>{runWord(run)}</strong>
        <RunState run={run} />
        <span class="quiet">
          asked for by {run.requestedBy || 'nobody'}, <Time at={run.startTime} />
        </span>
        <RunTime run={run} />
      </div>
      {!isOver && (
        <>
          <Meter percent={progress.percent} label={`${runWord(run)}: steps`} />
          <p class="run-now" aria-live="polite">
            Step {Math.min(progress.done + 1, progress.all)} of {progress.all}
            {step !== undefined && `: ${stepText(step)}`}
            {percent > 0 && ` · ${percent} %`}
            {text !== '' && ` · ${text}`}
          </p>
        </>
      )}
      {run.waiting !== undefined && !isOver && (
        <p class="waiting">
          Waits for {run.waiting.reason}: {run.waiting.message} (<Time at={run.waiting.since} />)
        </p>
      )}
      {run.error !== undefined && <p class="run-error">{run.error.message}</p>}
      <ol class="steps">
        {run.steps.map((each, index) => (
          <Step key={`${index} ${each.name}`} step={each} />
        ))}
      </ol>
    </div>
  );
}

export function RunState({ run }: { readonly run: Run }) {
  const word =
    run.phase === RunPhase.ENDED
      ? enumWord(RunOutcomeSchema, run.outcome)
      : run.phase === RunPhase.WAITING
        ? 'waiting'
        : 'running';
  return <Badge tone={outcomeTone(run)}>{word ?? 'unknown'}</Badge>;
}

function RunTime({ run }: { readonly run: Run }) {
  const isOver = run.phase === RunPhase.ENDED;
  const nowMs = useNow(isOver ? 0 : 1_000);
  const startMs = msOf(run.startTime);
  if (startMs === undefined) return null;
  return <span class="quiet">{span((msOf(run.endTime) ?? nowMs) - startMs)}</span>;
}

function Step({ step }: { readonly step: RunStep }) {
  const startMs = msOf(step.startTime);
  const endMs = msOf(step.endTime);
  const took = startMs !== undefined && endMs !== undefined ? span(endMs - startMs) : '';
  const word = enumWord(StepStateSchema, step.state) ?? '';
  return (
    <li class={word}>
      <Mark tone={stepTone(step.state)} />
      <span class="step-name">
        {stepText(step)} <span class="unseen">{word}</span>
        {step.attempt > 1 && <span class="quiet"> attempt {step.attempt}</span>}
        {step.error !== '' && <span class="step-error">{step.error}</span>}
        {step.skipCause !== SkipCause.UNSPECIFIED && (
          <span class="quiet"> {step.skippedBecause}</span>
        )}
      </span>
      <span class="quiet">{took}</span>
    </li>
  );
}
