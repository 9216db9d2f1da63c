/** Dialogs: the browser's own, so that focus stays inside, Escape closes and focus goes back. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { failureOf } from '../browser/client.ts';
import type { Failure } from '../logic/failure.ts';
import { FailureBox } from './errors.tsx';

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
  readonly isWide?: boolean;
}

export function Dialog({ title, close, children, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    // Taken from the page as it is: to close it would be taken for a person's wish.
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={isWide ? 'wide' : ''} aria-label={title} onClose={close}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

export interface DialogAction {
  readonly isBusy: boolean;
  readonly failure: Failure | undefined;
  /** Does it, unless it is being done; answers whether it was well. */
  readonly run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** One call at a time, with its failure. */
export function useAction(): DialogAction {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | undefined>(undefined);
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    if (isBusy) return false;
    setBusy(true);
    setFailure(undefined);
    try {
      await work();
      return true;
    } catch (error) {
      setFailure(failureOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, failure, run };
}

interface AskProps {
  readonly title: string;
  readonly text: string;
  readonly verb: string;
  readonly close: () => void;
  /** Called with the reason; what it throws is shown. */
  readonly act: (reason: string) => Promise<unknown>;
  readonly needsReason?: boolean;
}

/** Asks for a reason, then acts. */
export function AskDialog({ title, text, verb, close, act, needsReason = true }: AskProps) {
  const [reason, setReason] = useState('');
  const { isBusy, failure, run } = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await run(() => act(reason.trim()))) close();
  };
  const isReady = !needsReason || reason.trim() !== '';
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>{text}</p>
        <label>
          Reason{needsReason ? '' : ' (may be left out)'}
          <input
            value={reason}
            maxLength={500}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {failure !== undefined && (
          <FailureBox subject={`${title} did not work`} failure={failure} />
        )}
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={!isReady || isBusy}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
