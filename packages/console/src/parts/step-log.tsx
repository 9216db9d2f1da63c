/** The output of one step of a workflow, followed while it runs. */

import type { StepExit } from '@rackwright/messages';
import { useEffect, useRef, useState } from 'preact/hooks';
import { failureOf } from '../browser/client.ts';
import { useConsole } from '../browser/console.ts';
import type { Failure } from '../logic/failure.ts';
import { emptyLog, type LogText, withPiece } from '../logic/log-lines.ts';
import { Badge, Nothing } from './basics.tsx';
import { FailureBox } from './errors.tsx';

/** A log that is written fast is drawn no more often. */
const drawPauseMs = 100;
/** Pause before a log that broke off is followed again. */
const againMs = 2_000;

interface StepLogProps {
  /** "hosts/HOST/workflows/TEMPLATE/runs/NUMBER" */
  readonly run: string;
  /** The step's own name; empty: the one under way, or the last that ran. */
  readonly step: string;
}

export function StepLog({ run, step }: StepLogProps) {
  const { log, exit, failure } = useStepLog(run, step);
  const end = useRef<HTMLPreElement>(null);
  const [isFollowed, setFollowed] = useState(true);
  useEffect(() => {
    const element = end.current;
    if (isFollowed && element !== null) element.scrollTop = element.scrollHeight;
  }, [log.text, isFollowed]);
  return (
    <div class="log">
      {failure !== undefined && <FailureBox subject="The log cannot be read" failure={failure} />}
      <p class="log-head">
        <label class="inline">
          <input
            type="checkbox"
            checked={isFollowed}
            onChange={(event) => setFollowed(event.currentTarget.checked)}
          />
          Stay at the end
        </label>
        {log.isCut && <span class="quiet">Earlier lines are not shown.</span>}
        {exit !== undefined && <ExitBadge exit={exit} />}
      </p>
      {log.text === '' ? (
        <Nothing>Nothing has been written.</Nothing>
      ) : (
        <pre ref={end} tabIndex={0} aria-label="Log">
          {log.text}
        </pre>
      )}
    </div>
  );
}

function ExitBadge({ exit }: { readonly exit: StepExit }) {
  const isGood = exit.code === 0;
  const word = exit.signal === '' ? `ended with ${exit.code ?? '?'}` : `ended by ${exit.signal}`;
  return <Badge tone={isGood ? 'good' : 'bad'}>{word}</Badge>;
}

function useStepLog(run: string, step: string) {
  const { clients, clock } = useConsole();
  const [log, setLog] = useState<LogText>(emptyLog);
  const [exit, setExit] = useState<StepExit | undefined>(undefined);
  const [failure, setFailure] = useState<Failure | undefined>(undefined);
  useEffect(() => {
    const stopping = new AbortController();
    const { signal } = stopping;
    let cancelDraw: (() => void) | undefined;
    let cancelAgain = () => {};
    const read = async (): Promise<void> => {
      let text = emptyLog;
      const decoder = new TextDecoder();
      const draw = () => {
        cancelDraw = undefined;
        setLog(text);
      };
      const request = { name: run, step, follow: true };
      const options = { signal, timeoutMs: 0 };
      for await (const part of clients.workflows.readStepOutput(request, options)) {
        const piece = decoder.decode(part.content, { stream: true });
        text = withPiece(text, piece, part.offset, part.content.length);
        if (part.exit !== undefined) setExit(part.exit);
        cancelDraw ??= clock.after(drawPauseMs, draw);
      }
      setFailure(undefined);
    };
    const go = () => {
      read().catch((error: unknown) => {
        if (signal.aborted) return;
        const found = failureOf(error);
        if (!found.isUnreached) setFailure(found);
        else cancelAgain = clock.after(againMs, go);
      });
    };
    setLog(emptyLog);
    setExit(undefined);
    go();
    return () => {
      stopping.abort();
      cancelDraw?.();
      cancelAgain();
    };
  }, [clients, clock, run, step]);
  return { log, exit, failure };
}
